#include "partition/program_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "relay/function_attrs.h"
#include "relay/regions.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::Function;
using relay::FunctionNode;

namespace {

GraphTensor graph_tensor(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor == nullptr) return {.dtype = to_string(type), .shape = {}, .n_bytes = {}};
  GraphTensor made{.dtype = tensor->dtype.to_string(), .shape = as_shape(tensor->shape), .n_bytes = {}};
  if (!made.shape) return made;
  int64_t count = 1;
  for (const int64_t size : *made.shape) {
    if (__builtin_mul_overflow(count, size, &count)) return made;
  }
  const auto item = static_cast<int64_t>(tensor->dtype.bytes());
  if (int64_t bytes = 0; !__builtin_mul_overflow(count, item, &bytes)) made.n_bytes = bytes;
  return made;
}

std::vector<GraphTensor> graph_tensors(const Expr& expr) {
  std::vector<GraphTensor> tensors;
  for (const Type& leaf : leaves_of(expr->checked_type())) tensors.push_back(graph_tensor(leaf));
  return tensors;
}

std::string_view control_word(const Expr& expr) {
  if (expr.is<relay::IfNode>()) return "if";
  if (expr.is<relay::MatchNode>()) return "match";
  if (expr.is<CallNode>()) return "call";
  return "reference";
}

// Where a tensor comes from: an output of a node, or a variable whose value may only be known later. A constant has
// neither.
struct Source {
  int32_t node = kNone;
  const Object* var = nullptr;
  size_t leaf = 0;
};
using Sources = std::vector<Source>;  // one for each tensor of a value

// The values of one body: of the program, or of a region at one of its calls.
struct Scope {
  std::unordered_map<const Object*, Sources> values;
  // The values of variables that a let or a call of a function literal binds: several where it is called twice.
  std::unordered_map<const Object*, std::vector<Sources>> bound;
  size_t first_node = 0;
  int32_t block = kNone;
};

class GraphReader {
 public:
  GraphReader(const PlacedModule& placed, const Decision& decision) : placed_(placed), decision_(decision) {}

  ProgramGraph read() {
    const auto main = placed_.module->lookup("main").cast<FunctionNode>();
    Scope scope;
    for (const relay::Var& param : main->params) {
      const auto node = static_cast<int32_t>(graph_.nodes.size());
      graph_.nodes.push_back(
          {.kind = GraphNodeKind::kInput, .name = param->name_hint, .outputs = graph_tensors(param)});
      scope.values.emplace(param.object(), outputs_of(node));
    }
    const Sources results = walk(main->body, scope);
    HEADRACE_CHECK(next_row_ == placed_.placement.size(), "the graph has {} ops, the placement {}", next_row_,
                   placed_.placement.size());
    add_outputs(main->body, results);
    std::sort(graph_.edges.begin(), graph_.edges.end(), [](const GraphEdge& a, const GraphEdge& b) {
      return std::tie(a.to, a.input, a.from, a.output) < std::tie(b.to, b.input, b.from, b.output);
    });
    return std::move(graph_);
  }

 private:
  Sources outputs_of(int32_t node) const {
    Sources sources;
    for (size_t i = 0; i < graph_.nodes[static_cast<size_t>(node)].outputs.size(); ++i)
      sources.push_back({.node = node, .leaf = i});
    return sources;
  }

  // The order in which Placer (place.cc) makes rows: the n-th op that is met here has the n-th row
  // (PlacedModule::calls).
  Sources walk(const Expr& body, Scope& scope) {
    scope.first_node = graph_.nodes.size();
    visit(body, scope);
    add_edges(scope);
    Sources results;
    for (const Source& source : sources_of(body, scope)) {
      const std::vector<Source> found = resolve(source, scope);
      results.push_back(found.empty() ? Source{} : found.front());
    }
    return results;
  }

  void visit(const Expr& body, Scope& scope) {
    relay::post_order(
        body,
        [&](const Expr& expr) {
          const auto* function = expr.as<FunctionNode>();
          if (function == nullptr) return true;
          return scope.block == kNone ? !relay::compiler_of(*function) : !is_piece(*function);
        },
        [&](const Expr& expr) { scope.values.insert_or_assign(expr.object(), leave(expr, scope)); });
  }

  // Whether it is computed as one: its rows are there where it is called.
  static bool is_piece(const FunctionNode& function) { return function.attrs.contains(relay::kComposite); }

  static Sources sources_of(const Expr& expr, const Scope& scope) {
    if (const auto known = scope.values.find(expr.object()); known != scope.values.end()) return known->second;
    return {};
  }

  static Sources of_items(const Array<Expr>& items, const Scope& scope) {
    Sources all;
    for (const Expr& item : items) {
      const Sources sources = sources_of(item, scope);
      all.insert(all.end(), sources.begin(), sources.end());
    }
    return all;
  }

  Sources leave(const Expr& expr, Scope& scope) {
    if (expr.is<relay::VarNode>() && expr->has_checked_type()) {
      if (const auto known = scope.values.find(expr.object()); known != scope.values.end()) return known->second;
      Sources sources;
      for (size_t i = 0; i < leaves_of(expr->checked_type()).size(); ++i)
        sources.push_back({.var = expr.object(), .leaf = i});
      return sources;
    }
    if (expr.is<relay::ConstantNode>()) return Sources(1);
    if (const auto* tuple = expr.as<relay::TupleNode>()) return of_items(tuple->items, scope);
    if (const auto* item = expr.as<relay::TupleGetItemNode>()) return leave_item(*item, scope);
    if (const auto* let = expr.as<relay::LetNode>()) {
      scope.bound[let->var.object()].push_back(sources_of(let->value, scope));
      return sources_of(let->body, scope);
    }
    if (const auto* function = expr.as<FunctionNode>()) return sources_of(function->body, scope);
    if (const auto* call = expr.as<CallNode>()) return leave_call(expr, *call, scope);
    const bool is_value = expr.is<relay::IfNode>() || expr.is<relay::MatchNode>() || expr.is<relay::RefCreateNode>() ||
                          expr.is<relay::RefReadNode>() || expr.is<relay::RefWriteNode>();
    return is_value ? add_control(expr, scope) : Sources();
  }

  // Copies the sources of the item alone, because a tuple may be wide.
  static Sources leave_item(const relay::TupleGetItemNode& item, const Scope& scope) {
    const auto* tuple = item.tuple->checked_type().as<TupleTypeNode>();
    const auto known = scope.values.find(item.tuple.object());
    if (tuple == nullptr) return {};
    const LeafRange range = leaves_of_field(*tuple, item.index);
    if (known == scope.values.end() || range.begin + range.count > known->second.size()) return Sources(range.count);
    const auto first = known->second.begin() + static_cast<std::ptrdiff_t>(range.begin);
    return {first, first + static_cast<std::ptrdiff_t>(range.count)};
  }

  Sources leave_call(const Expr& expr, const CallNode& call, Scope& scope) {
    if (call.as_op() != nullptr) return add_op(expr, call, scope);
    // A region's body is walked at each of its calls. It holds no calls of regions.
    if (scope.block == kNone) {
      if (const Function region = relay::region_of(call, placed_.module)) return add_block(call, region, scope);
    }
    const auto* function = call.op.as<FunctionNode>();
    if (function == nullptr) return add_control(expr, scope);
    for (size_t i = 0; i < call.args.size() && i < function->params.size(); ++i)
      scope.bound[function->params[i].object()].push_back(sources_of(call.args[i], scope));
    if (scope.block != kNone && is_piece(*function)) visit(function->body, scope);
    return sources_of(function->body, scope);
  }

  Sources add_op(const Expr& expr, const CallNode& call, Scope& scope) {
    const auto row = static_cast<int32_t>(next_row_++);
    HEADRACE_CHECK(static_cast<size_t>(row) < placed_.calls.size() && placed_.calls[static_cast<size_t>(row)] == &call,
                   "row {} of the placement is not the {} that the graph has there", row, call.as_op()->name);
    const artifact::Placement& placement = placed_.placement.at(static_cast<size_t>(row));
    return add_node({.kind = GraphNodeKind::kOp,
                     .name = placement.op,
                     .op = placement.kind,
                     .placement = row,
                     .block = scope.block,
                     .outputs = graph_tensors(expr),
                     .alternatives = alternatives(call, placement)},
                    {call.args.begin(), call.args.end()}, scope);
  }

  Sources add_control(const Expr& expr, Scope& scope) {
    std::vector<Expr> operands;
    for (const Expr& child : relay::children_of(expr)) {
      if (child->has_checked_type()) operands.push_back(child);
    }
    return add_node({.kind = GraphNodeKind::kControl,
                     .name = to_string(expr->span),
                     .op = std::string(control_word(expr)),
                     .block = scope.block,
                     .outputs = graph_tensors(expr)},
                    operands, scope);
  }

  Sources add_node(GraphNode node, const std::vector<Expr>& operands, Scope& scope) {
    const auto number = static_cast<int32_t>(graph_.nodes.size());
    for (const Expr& operand : operands) {
      const Sources sources = sources_of(operand, scope);
      std::vector<GraphTensor> tensors;
      // A function is not a tensor: what its body gives is what it hands on.
      if (!operand.is<FunctionNode>() && operand->has_checked_type()) tensors = graph_tensors(operand);
      tensors.resize(std::max(tensors.size(), sources.size()));
      for (size_t i = 0; i < sources.size(); ++i)
        pending_.push_back({sources[i], number, static_cast<int32_t>(node.inputs.size() + i)});
      node.inputs.insert(node.inputs.end(), tensors.begin(), tensors.end());
    }
    graph_.nodes.push_back(std::move(node));
    return outputs_of(number);
  }

  Sources add_block(const CallNode& call, const Function& region, Scope& outer) {
    const std::string name = relay::region_name(call, *region);
    Scope inner;
    inner.block = static_cast<int32_t>(graph_.blocks.size());
    graph_.blocks.push_back({.region = name, .backend = own_name(*relay::compiler_of(*region))});
    for (size_t i = 0; i < call.args.size(); ++i) {
      Sources args;
      for (const Source& source : sources_of(call.args[i], outer)) args.push_back(source);
      inner.values.emplace(region->params[i].object(), args);
    }
    const size_t end_of_rows = next_row_;
    const auto [first, is_new] = first_row_.emplace(name, next_row_);
    next_row_ = first->second;
    std::vector<Pending> outer_pending = std::exchange(pending_, {});
    const Sources results = walk(region->body, inner);
    // A value from outside that a variable names waits for the outer body's end.
    outer_pending.insert(outer_pending.end(), pending_.begin(), pending_.end());
    pending_ = std::move(outer_pending);
    if (!is_new) next_row_ = end_of_rows;
    return results;
  }

  // Adds the edges that are known; those from variables that the scope does not bind stay pending for the scope around.
  void add_edges(const Scope& scope) {
    std::vector<Pending> open;
    for (const Pending& pending : pending_) {
      for (const Source& source : resolve(pending.source, scope)) {
        if (source.node != kNone)
          graph_.edges.push_back({.from = source.node,
                                  .output = static_cast<int32_t>(source.leaf),
                                  .to = pending.to,
                                  .input = pending.input});
        else
          open.push_back({source, pending.to, pending.input});
      }
    }
    pending_ = std::move(open);
  }

  // Returns the nodes that give a tensor, and the variables that the scope does not bind.
  static std::vector<Source> resolve(const Source& source, const Scope& scope) {
    std::vector<Source> found, open{source};
    std::set<std::pair<const Object*, size_t>> seen;
    while (!open.empty()) {
      const Source one = open.back();
      open.pop_back();
      if (one.node != kNone) found.push_back(one);
      if (one.node != kNone || one.var == nullptr || !seen.emplace(one.var, one.leaf).second) continue;
      const auto bound = scope.bound.find(one.var);
      if (bound == scope.bound.end()) {
        found.push_back(one);
        continue;
      }
      for (const Sources& sources : bound->second) {
        if (one.leaf < sources.size()) open.push_back(sources[one.leaf]);
      }
    }
    return found;
  }

  void add_outputs(const Expr& body, const Sources& results) {
    const std::vector<GraphTensor> tensors = graph_tensors(body);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto node = static_cast<int32_t>(graph_.nodes.size());
      graph_.nodes.push_back(
          {.kind = GraphNodeKind::kOutput, .name = fmt::format("output{}", i), .inputs = {tensors[i]}});
      if (i < results.size() && results[i].node != kNone)
        graph_.edges.push_back(
            {.from = results[i].node, .output = static_cast<int32_t>(results[i].leaf), .to = node, .input = 0});
    }
  }

  // Says why a backend that takes the op of a region does not have it: the op's own reason, from its point of view.
  static GraphAlternative passed_over(const std::string& name, const artifact::Placement& placement) {
    GraphAlternative row{.backend = name, .reason = placement.reason, .message = placement.message};
    if (placement.reason == HR_REASON_PLACE_BY_ORDER && name == kNative)
      row.message = fmt::format("{} takes the op, and every backend of the list is before native", placement.backend);
    else if (placement.reason == HR_REASON_PLACE_BY_ORDER)
      row.message = fmt::format("the backend takes the op, too; {} is before it in the list", placement.backend);
    else if (placement.reason == HR_REASON_PLACE_BY_COST)
      row.message = fmt::format("the plan of least cost has it {}",
                                placement.backend == kNative ? "natively" : "by " + placement.backend);
    return row;
  }

  std::vector<GraphAlternative> alternatives(const CallNode& call, const artifact::Placement& placement) const {
    const bool is_outside = placement.backend == kNative || placement.backend == kExternal;
    std::vector<GraphAlternative> rows;
    const Backends& backends = decision_.backends();
    const PlacedCall placed = placed_.call(call);
    for (size_t i = 0; i < backends.size(); ++i) {
      const std::string name(backends[i]->name());
      if (name == placement.backend) continue;
      if (const Verdict verdict = decision_.verdict_on(placed, i); !verdict.ok()) {
        const RefusedMatches& refused = decision_.refusals().of(placed.own);
        rows.push_back({name, verdict.reason, with_patterns(verdict, refused, name).message});
      } else if (!is_outside) {
        rows.push_back(passed_over(name, placement));
      } else if (const std::string fault = why_in_no_region(call); !fault.empty()) {
        rows.push_back({name, HR_REASON_PLACE_NO_REGION, fault});
      } else {
        rows.push_back(passed_over(name, placement));
      }
    }
    if (!is_outside) rows.push_back(passed_over(kNative, placement));
    return rows;
  }

  struct Pending {
    Source source;
    int32_t to, input;
  };

  const PlacedModule& placed_;
  const Decision& decision_;
  ProgramGraph graph_;
  std::vector<Pending> pending_;
  std::map<std::string, size_t> first_row_;  // first row of each region
  size_t next_row_ = 0;
};

}  // namespace

std::string_view name_of(GraphNodeKind kind) {
  switch (kind) {
    case GraphNodeKind::kInput:
      return "input";
    case GraphNodeKind::kOp:
      return "op";
    case GraphNodeKind::kControl:
      return "control";
    case GraphNodeKind::kOutput:
      return "output";
  }
  return "";
}

ProgramGraph read_graph(const PlacedModule& placed, const Decision& decision) {
  return GraphReader(placed, decision).read();
}

}  // namespace headrace::partition
