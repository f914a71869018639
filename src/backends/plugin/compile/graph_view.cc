#include "backends/plugin/compile/graph_view.h"

#include <mutex>

#include "artifact/trailer.h"
#include "backends/plugin/compile/attr_view.h"
#include "relay/composites.h"
#include "relay/leaves.h"
#include "relay/visit.h"
#include "tensor/ndarray.h"

namespace {

using headrace::backends::plugin::AttrList;
using headrace::backends::plugin::Graph;

struct TensorView {
  DLDataType dtype{};
  std::vector<int64_t> shape = {};
};

// A constant, whose content is hashed when it is first asked for: most graphs are only asked about their types.
struct ConstantView {
  headrace::NDArray data;
  mutable std::once_flag once = {};
  mutable std::string id = {};

  explicit ConstantView(headrace::NDArray dense) : data(std::move(dense)) {}
  const char* content_id() const {
    std::call_once(once,
                   [this] { id = headrace::artifact::content_hash({data.data<const uint8_t>(), data.size_bytes()}); });
    return id.c_str();
  }
};

struct GraphNode {
  int32_t kind = HR_NODE_INPUT;
  std::vector<uint32_t> operands = {};
  std::vector<TensorView> results = {};
  std::string op = {};
  uint32_t op_version = 0;
  uint32_t index = 0;
  std::string place = {};
  std::shared_ptr<const ConstantView> constant = {};
  std::shared_ptr<const AttrList> attrs = {};
  Graph body = {};
};

}  // namespace

struct hr_graph {
  std::string name;
  std::vector<GraphNode> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> outputs;  // a node, and which of its results
};

namespace headrace::backends::plugin {

namespace {

using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;

Refusal no_view(const Expr& expr, std::string_view why) {
  const std::string place = to_string(expr->span);
  return {HR_REASON_OP_UNSUPPORTED,
          fmt::format("it holds {}{}, which a plugin cannot be shown", why, place.empty() ? "" : " at " + place)};
}

std::vector<TensorView> views_of(const Type& type) {
  std::vector<TensorView> views;
  for (const Type& leaf : leaves_of(type)) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    TensorView view{.dtype = tensor->dtype.raw()};
    for (const PrimExpr& dim : tensor->shape) {
      const auto* number = dim.as<IntImmNode>();
      view.shape.push_back(number == nullptr ? -1 : number->value);
    }
    views.push_back(std::move(view));
  }
  return views;
}

bool has_tensors_only(const Type& type) {
  if (type.is<TensorTypeNode>()) return true;
  const auto* tuple = type.as<TupleTypeNode>();
  return tuple != nullptr && std::all_of(tuple->items.begin(), tuple->items.end(), has_tensors_only);
}

// Makes the nodes of one function.
class Builder {
 public:
  explicit Builder(std::string name) : graph_(new hr_graph{.name = std::move(name), .nodes = {}, .outputs = {}}) {}

  Expected<Graph> build(const FunctionNode& function) {
    for (const relay::Var& param : function.params) {
      if (!has_tensors_only(param->checked_type())) return no_view(param, "a parameter that is not a tensor");
      add_parameter(param);
    }
    if (auto refusal = add_body(function.body)) return *std::move(refusal);
    const uint32_t root = ids_.at(function.body.get());
    for (uint32_t i = 0; i < node(root).results.size(); ++i) graph_->outputs.push_back(source_of(root, i));
    return std::move(graph_);
  }

  Expected<Graph> build(const CallNode& call, const std::vector<const CallNode*>& producers) {
    if (auto refusal = add_with_operands(call, producers)) return *std::move(refusal);
    const auto root = static_cast<uint32_t>(graph_->nodes.size() - 1);
    for (uint32_t i = 0; i < node(root).results.size(); ++i) graph_->outputs.emplace_back(root, i);
    return std::move(graph_);
  }

 private:
  // Recursion is as deep as there are producers.
  std::optional<Refusal> add_with_operands(const CallNode& call, const std::vector<const CallNode*>& producers) {
    for (const Expr& arg : call.args) {
      if (ids_.contains(arg.get())) continue;
      if (!has_tensors_only(arg->checked_type())) return no_view(arg, "an operand that is not a tensor");
      const auto* producer = arg.as<CallNode>();
      if (std::find(producers.begin(), producers.end(), producer) == producers.end()) {
        add_operand(arg);
      } else if (auto refusal = add_with_operands(*producer, producers)) {
        return refusal;
      }
    }
    return visit_call(call);
  }

  const GraphNode& node(uint32_t id) const { return graph_->nodes[id]; }

  uint32_t add(GraphNode made) {
    graph_->nodes.push_back(std::move(made));
    return static_cast<uint32_t>(graph_->nodes.size() - 1);
  }

  // An operand of a call that is shown alone: tuples of constants keep them.
  void add_operand(const Expr& arg) {
    if (const auto* tuple = arg.as<relay::TupleNode>()) {
      for (const Expr& field : tuple->items) {
        if (!ids_.contains(field.get())) add_operand(field);
      }
      add_tuple(*tuple);
    } else if (const auto* constant = arg.as<ConstantNode>()) {
      add_constant(*constant);
    } else {
      add_parameter(arg);
    }
  }

  // Each tensor of a parameter is an input; those of a tuple are put together again.
  void add_parameter(const Expr& param) {
    std::vector<TensorView> views = views_of(param->checked_type());
    const bool is_tensor = param->checked_type().is<TensorTypeNode>();
    GraphNode tuple{.kind = HR_NODE_TUPLE, .place = to_string(param->span)};
    for (TensorView& view : views) {
      const uint32_t id = add({.kind = HR_NODE_INPUT, .results = {view}, .place = to_string(param->span)});
      tuple.operands.push_back(id);
      if (is_tensor) ids_[param.get()] = id;
    }
    if (is_tensor) return;
    tuple.results = std::move(views);
    ids_[param.get()] = add(std::move(tuple));
  }

  std::optional<Refusal> add_body(const Expr& body) {
    std::optional<Refusal> refusal;
    std::unordered_map<const Object*, Expr> let_values;
    relay::post_order(
        body,
        [&](const Expr& expr) {
          if (const auto* let = expr.as<relay::LetNode>()) let_values[let->var.get()] = let->value;
          return !expr.is<FunctionNode>();
        },
        [&](const Expr& expr) {
          if (refusal || ids_.contains(expr.get()) || expr.is<OpNode>() || expr.is<FunctionNode>()) return;
          if (const auto bound = let_values.find(expr.get()); bound != let_values.end()) {
            if (const auto value = ids_.find(bound->second.get()); value != ids_.end())
              ids_[expr.get()] = value->second;
          } else {
            refusal = visit(expr);
          }
        });
    return refusal;
  }

  std::optional<Refusal> visit(const Expr& expr) {
    if (!has_tensors_only(expr->checked_type())) return no_view(expr, "a value that is not a tensor");
    if (const auto* call = expr.as<CallNode>()) return visit_call(*call);
    if (const auto* constant = expr.as<ConstantNode>()) {
      add_constant(*constant);
    } else if (const auto* tuple = expr.as<relay::TupleNode>()) {
      add_tuple(*tuple);
    } else if (const auto* item = expr.as<relay::TupleGetItemNode>()) {
      add_item(*item);
    } else if (const auto* let = expr.as<relay::LetNode>()) {
      ids_[expr.get()] = ids_.at(let->body.get());
    } else {
      return no_view(expr, fmt::format("a {}", expr->key()));
    }
    return std::nullopt;
  }

  std::optional<Refusal> visit_call(const CallNode& call) {
    if (call.as_op() != nullptr) return add_call(call), std::nullopt;
    const FunctionNode* function = relay::called_composite(call);
    const std::string pattern = function == nullptr ? "" : relay::composite_name(*function);
    if (pattern.empty()) return no_view(ref(&call), "a call of a function");
    Expected<Graph> body = Builder(pattern).build(*function);
    if (!body) return body.refusal();
    ids_[&call] = add({.kind = HR_NODE_COMPOSITE,
                       .operands = operands_of(call.args),
                       .results = views_of(call.checked_type()),
                       .op = pattern,
                       .place = to_string(call.span),
                       .body = std::move(body.value())});
    return std::nullopt;
  }

  void add_call(const CallNode& call) {
    ids_[&call] = add({.kind = HR_NODE_CALL,
                       .operands = operands_of(call.args),
                       .results = views_of(call.checked_type()),
                       .op = call.as_op()->name,
                       .op_version = static_cast<uint32_t>(call.as_op()->version),
                       .place = to_string(call.span),
                       .attrs = std::make_shared<const AttrList>(call.attrs)});
  }

  void add_constant(const ConstantNode& constant) {
    ids_[&constant] = add({.kind = HR_NODE_CONST,
                           .results = views_of(constant.checked_type()),
                           .place = to_string(constant.span),
                           .constant = std::make_shared<const ConstantView>(constant.data.to_dense())});
  }

  void add_tuple(const relay::TupleNode& tuple) {
    ids_[&tuple] = add({.kind = HR_NODE_TUPLE,
                        .operands = operands_of(tuple.items),
                        .results = views_of(tuple.checked_type()),
                        .place = to_string(tuple.span)});
  }

  // An item is what computes it, or one of several results of that; an item that is a tuple is put together again.
  void add_item(const relay::TupleGetItemNode& item) {
    const auto& tuple = *item.tuple->checked_type().cast<TupleTypeNode>();
    const LeafRange leaves = leaves_of_field(tuple, item.index);
    GraphNode again{.kind = HR_NODE_TUPLE, .results = views_of(item.checked_type()), .place = to_string(item.span)};
    for (size_t i = 0; i < leaves.count; ++i) {
      auto [id, result] = source_of(ids_.at(item.tuple.get()), static_cast<uint32_t>(leaves.begin + i));
      if (node(id).results.size() > 1)
        id = add({.kind = HR_NODE_ITEM,
                  .operands = {id},
                  .results = {again.results[i]},
                  .index = result,
                  .place = to_string(item.span)});
      again.operands.push_back(id);
    }
    ids_[&item] = item.checked_type().is<TensorTypeNode>() ? again.operands.at(0) : add(std::move(again));
  }

  std::vector<uint32_t> operands_of(const Array<Expr>& args) const {
    std::vector<uint32_t> operands;
    for (const Expr& arg : args) operands.push_back(ids_.at(arg.get()));
    return operands;
  }

  // Returns the node that computes a result, behind tuples.
  std::pair<uint32_t, uint32_t> source_of(uint32_t id, uint32_t result) const {
    while (node(id).kind == HR_NODE_TUPLE) {
      size_t operand = 0;
      while (result >= node(node(id).operands[operand]).results.size())
        result -= static_cast<uint32_t>(node(node(id).operands[operand++]).results.size());
      id = node(id).operands[operand];
    }
    return {id, result};
  }

  Graph graph_;
  std::unordered_map<const Object*, uint32_t> ids_;
};

const GraphNode* node_of(const hr_graph* graph, uint32_t node) {
  return graph != nullptr && node < graph->nodes.size() ? &graph->nodes[node] : nullptr;
}

template <typename F>
auto with_node(const hr_graph* graph, uint32_t node, F&& read) -> decltype(read(std::declval<const GraphNode&>())) {
  const GraphNode* found = node_of(graph, node);
  return found == nullptr ? decltype(read(*found)){} : read(*found);
}

const char* graph_name(const hr_graph* graph) { return graph == nullptr ? "" : graph->name.c_str(); }
uint32_t graph_num_nodes(const hr_graph* graph) {
  return graph == nullptr ? 0 : static_cast<uint32_t>(graph->nodes.size());
}
uint32_t graph_num_outputs(const hr_graph* graph) {
  return graph == nullptr ? 0 : static_cast<uint32_t>(graph->outputs.size());
}
uint32_t graph_output(const hr_graph* graph, uint32_t index, uint32_t* result) {
  const bool is_there = graph != nullptr && index < graph->outputs.size();
  const auto [node, of_node] = is_there ? graph->outputs[index] : std::pair<uint32_t, uint32_t>(0, 0);
  if (result != nullptr) *result = of_node;
  return node;
}
int32_t graph_kind(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) { return n.kind; });
}
uint32_t graph_num_operands(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) { return static_cast<uint32_t>(n.operands.size()); });
}
uint32_t graph_operand(const hr_graph* graph, uint32_t node, uint32_t index) {
  return with_node(graph, node, [&](const GraphNode& n) { return index < n.operands.size() ? n.operands[index] : 0; });
}
uint32_t graph_num_results(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) { return static_cast<uint32_t>(n.results.size()); });
}
hr_tensor_type graph_result_type(const hr_graph* graph, uint32_t node, uint32_t index) {
  return with_node(graph, node, [&](const GraphNode& n) {
    if (index >= n.results.size()) return hr_tensor_type{};
    const TensorView& view = n.results[index];
    return hr_tensor_type{
        .dtype = view.dtype, .ndim = static_cast<int32_t>(view.shape.size()), .shape = view.shape.data()};
  });
}
const char* graph_op(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) { return n.op.empty() ? nullptr : n.op.c_str(); });
}
uint32_t graph_op_version(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) { return n.op_version; });
}
uint32_t graph_index(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) { return n.index; });
}
const hr_graph* graph_body(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) -> const hr_graph* { return n.body.get(); });
}
hr_constant graph_constant(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node, [](const GraphNode& n) {
    if (n.constant == nullptr) return hr_constant{};
    return hr_constant{.content_id = n.constant->content_id(), .tensor = &n.constant->data.tensor()};
  });
}
uint32_t graph_num_attrs(const hr_graph* graph, uint32_t node) {
  return with_node(graph, node,
                   [](const GraphNode& n) { return n.attrs ? static_cast<uint32_t>(n.attrs->all().size()) : 0; });
}
hr_attr graph_attr(const hr_graph* graph, uint32_t node, uint32_t index) {
  return with_node(graph, node, [&](const GraphNode& n) {
    return n.attrs && index < n.attrs->all().size() ? n.attrs->all()[index] : hr_attr{};
  });
}
hr_attr graph_find_attr(const hr_graph* graph, uint32_t node, const char* name) {
  return with_node(graph, node,
                   [&](const GraphNode& n) { return n.attrs && name != nullptr ? n.attrs->find(name) : hr_attr{}; });
}
uint64_t graph_num_items(const hr_graph* graph, uint32_t node, const char* name, const uint64_t* path, uint32_t depth) {
  return with_node(graph, node, [&](const GraphNode& n) {
    return n.attrs && name != nullptr ? n.attrs->num_items(name, {path, depth}) : uint64_t{0};
  });
}
hr_attr graph_item(const hr_graph* graph, uint32_t node, const char* name, const uint64_t* path, uint32_t depth) {
  return with_node(graph, node, [&](const GraphNode& n) {
    return n.attrs && name != nullptr ? n.attrs->item(name, {path, depth}) : hr_attr{};
  });
}
const char* graph_place(const hr_graph* graph, uint32_t node) {
  const GraphNode* found = node_of(graph, node);
  return found == nullptr ? "" : found->place.c_str();
}

}  // namespace

void collect_constants(const hr_graph* graph, std::map<std::string, NDArray, std::less<>>& constants) {
  for (const GraphNode& node : graph->nodes) {
    if (node.constant != nullptr) constants.emplace(node.constant->content_id(), node.constant->data);
    if (node.body != nullptr) collect_constants(node.body.get(), constants);
  }
}

void DeleteGraph::operator()(hr_graph* graph) const { delete graph; }

const hr_graph_api* graph_api() {
  static const hr_graph_api api{
      .abi = {.size = sizeof(hr_graph_api), .major = HR_BACKEND_ABI_MAJOR, .minor = HR_BACKEND_ABI_MINOR},
      .name = &graph_name,
      .num_nodes = &graph_num_nodes,
      .num_outputs = &graph_num_outputs,
      .output = &graph_output,
      .kind = &graph_kind,
      .num_operands = &graph_num_operands,
      .operand = &graph_operand,
      .num_results = &graph_num_results,
      .result_type = &graph_result_type,
      .op = &graph_op,
      .op_version = &graph_op_version,
      .index = &graph_index,
      .body = &graph_body,
      .constant = &graph_constant,
      .num_attrs = &graph_num_attrs,
      .attr = &graph_attr,
      .find_attr = &graph_find_attr,
      .place = &graph_place,
      .num_items = &graph_num_items,
      .item = &graph_item};
  return &api;
}

Expected<Graph> make_graph(const FunctionNode& function, const std::string& name) {
  return Builder(name).build(function);
}

Expected<Graph> make_graph(const CallNode& call, const std::vector<const CallNode*>& producers) {
  return Builder(call.as_op() == nullptr ? "" : call.as_op()->name).build(call, producers);
}

}  // namespace headrace::backends::plugin
