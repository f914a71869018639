#include "frontend/onnx/import.h"

#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "arith/canonical.h"
#include "base/interrupt.h"
#include "frontend/onnx/field_reader.h"
#include "frontend/onnx/foreign_node.h"
#include "frontend/onnx/graph_inputs.h"
#include "frontend/onnx/graph_outputs.h"
#include "frontend/onnx/op_table.h"
#include "frontend/onnx/read_model.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "ops/tensor/shape.h"
#include "relay/infer/infer_type.h"

namespace headrace::onnx {

namespace {

// The value of a name in the graph.
struct Slot {
  Expr expr;                            // null: it could not be imported, for a reason in the list of refusals
  const TensorProto* tensor = nullptr;  // an initialiser that was not used yet
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options)
      : model_(model),
        opset_(default_opset(model)),
        tensors_(model),
        inputs_(resolve_inputs(model, options, refusals_)),
        foreign_(model, options.claim, inputs_) {}

  ImportedModel run() {
    define_inputs();
    import_graph(model_.graph);
    ImportedModel result;
    const Expr body = make_body(result);
    if (!refusals_.empty()) throw ImportError(std::move(refusals_), model_.source);
    Array<relay::Var> params;
    for (const GraphInput& input : inputs_) {
      if (!input.var) continue;
      params.push_back(input.var);
      result.inputs.emplace_back(input.info->name);
    }
    result.module = relay::infer_type(make_module(relay::make_function(params, body)));
    result.files = tensors_.external_files();
    return result;
  }

 private:
  void refuse(std::string node, std::string op, hr_reason reason, std::string message, std::string value = {}) {
    refusals_.push_back({std::move(node), std::move(op), reason, std::move(message), std::move(value)});
  }
  // Reports a mistake of the graph. The same message, such as that of a missing file of many tensors, is reported once.
  void refuse_graph(std::string message) {
    if (told_.insert(message).second) refuse("", "", HR_REASON_BAD_MODEL, std::move(message));
  }

  void define(std::string_view name, Slot slot, std::string_view what) {
    if (name.empty()) return refuse_graph(fmt::format("{} has no name", what));
    if (slots_.emplace(name, std::move(slot)).second) {
      defined_.push_back(name);
    } else {
      refuse_graph(fmt::format("value {} is defined twice", printable(name)));
    }
  }

  void define_inputs() {
    for (const GraphInput& input : inputs_) {
      Expr expr = input.var;
      if (input.bound) expr = relay::make_constant(input.bound, make_span(std::string(input.info->name)));
      define(input.info->name, {expr ? facts_.typed(expr) : expr}, "a graph input");
    }
  }

  void import_graph(const Graph& graph) {
    const ForeignNodes::Hidden hidden = foreign_.declare(graph);
    import_nodes(graph);
    foreign_.restore(hidden);
  }

  void import_nodes(const Graph& graph) {
    define_initializers(graph);
    for (const Node& node : graph.nodes) produced_.insert(node.outputs.begin(), node.outputs.end());
    for (const Node& node : graph.nodes) import_node(node);
  }

  void define_initializers(const Graph& graph) {
    for (const TensorProto& tensor : graph.initializers) define(tensor.name, {{}, &tensor}, "an initialiser");
    for (const SparseTensorProto& tensor : graph.sparse_initializers) {
      define(tensor.values.name, {}, "a sparse initialiser");
      refuse("", "", HR_REASON_DTYPE_UNSUPPORTED,
             fmt::format("initialiser {} is sparse, which is not supported; store it dense",
                         printable(tensor.values.name)));
    }
  }

  // Loads an initialiser at its first use.
  void load(std::string_view name, Slot& slot) {
    const TensorProto* tensor = std::exchange(slot.tensor, nullptr);
    try {
      slot.expr = facts_.typed(relay::make_constant(load_array(tensors_, *tensor), make_span(std::string(name))));
    } catch (const Refused& refused) {
      refuse("", "", refused.reason, refused.message);
    } catch (const UserError& error) {
      refuse_graph(error.message());
    }
  }

  // Returns the value of a name. If there is none, reports the reason once and returns null.
  Expr find(std::string_view name, const std::string& user) {
    const auto it = slots_.find(name);
    if (it == slots_.end()) {
      refuse_graph(produced_.contains(name)
                       ? fmt::format("{} uses {} before the node that makes it; the nodes are not in topological "
                                     "order, or depend on each other in a cycle",
                                     user, printable(name))
                       : fmt::format("{} uses {}, which nothing defines", user, printable(name)));
      return {};
    }
    if (it->second.tensor != nullptr) load(name, it->second);
    return it->second.expr;
  }

  bool is_model_function(const Node& node) const {
    return std::any_of(model_.functions.begin(), model_.functions.end(), [&](const ModelFunction& function) {
      return function.name == node.op_type && function.domain == node.domain;
    });
  }

  static const OpRow* row_of(const Node& node) {
    return is_default_domain(node.domain) ? find_op_row(node.op_type) : nullptr;
  }

  // Returns whether all checks hold that need the table's row and not the inputs. If one fails, reports it.
  bool is_well_formed(const Node& node, const OpRow* row) {
    const std::string label = node_label(node), op = op_label(node);
    const auto count = static_cast<int>(node.inputs.size());
    if (count < row->least_inputs || (row->most_inputs != kAny && count > row->most_inputs)) {
      const std::string most = row->most_inputs == kAny ? "any number" : std::to_string(row->most_inputs);
      refuse(label, op, HR_REASON_BAD_MODEL,
             fmt::format("it has {} inputs; the operator takes {} to {}", count, row->least_inputs, most));
      return false;
    }
    const size_t needed = row->most_inputs == kAny ? node.inputs.size() : static_cast<size_t>(row->least_inputs);
    const auto gap = std::find(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(needed), "");
    if (const auto i = static_cast<size_t>(gap - node.inputs.begin()); i < needed) {
      refuse(label, op, HR_REASON_BAD_MODEL, fmt::format("input {} is left out, but the operator needs it", i));
      return false;
    }
    std::unordered_set<std::string_view> names;
    for (const Attribute& attribute : node.attributes) {
      if (names.insert(attribute.name).second) continue;
      refuse(label, op, HR_REASON_BAD_MODEL, fmt::format("attribute {} is given twice", printable(attribute.name)));
      return false;
    }
    return true;
  }

  void import_node(const Node& node) {
    poll_interrupt();
    const std::string user = fmt::format("node {} ({})", printable(node_label(node)), escaped(op_label(node)));
    define_outputs(
        node,
        node.op_type == "If" && is_default_domain(node.domain) ? import_if(node, user) : import_operator(node, user),
        user);
  }

  void define_outputs(const Node& node, const Exprs& outputs, const std::string& user) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) define(node.outputs[i], {i < outputs.size() ? outputs[i] : Expr()}, user);
    }
  }

  // Imports the branch that a known condition selects, in place of the node; where only a run tells, both, as an `if`
  // of Relay. If the node is refused, reports why and returns no outputs.
  Exprs import_if(const Node& node, const std::string& user) {
    if (node.inputs.size() != 1)
      return invalid_if(node, fmt::format("it has {} inputs; it takes 1", node.inputs.size()));
    const Expr condition = find(node.inputs[0], user);
    if (!condition) return {};
    const TensorType type = facts_.type(condition);
    if (type->dtype != DataType::bool_())
      return invalid_if(node, fmt::format("its condition is a {}, expected a bool", type->dtype));
    const NDArray known = facts_.constant(condition);
    if (!known) return import_choice(node, condition, user);
    if (known.num_elements() != 1) return invalid_if(node, "its condition is no single element");
    const Graph* branch = branch_of(node, element_as_int(known.tensor(), 0) != 0 ? kThen : kElse);
    return branch == nullptr ? Exprs() : import_branch(*branch, node, user);
  }

  static constexpr std::string_view kThen = "then_branch", kElse = "else_branch";

  Exprs invalid_if(const Node& node, std::string message) {
    refuse(node_label(node), "If", HR_REASON_BAD_MODEL, std::move(message));
    return {};
  }

  // Returns the graph of a branch; reports that there is none and returns null.
  const Graph* branch_of(const Node& node, std::string_view name) {
    const Attribute* branch = node.find_attribute(name);
    if (branch != nullptr && branch->kind == AttributeKind::kGraph && branch->graphs.size() == 1)
      return &branch->graphs[0];
    invalid_if(node, fmt::format("attribute {} is no graph", printable(name)));
    return nullptr;
  }

  Exprs import_choice(const Node& node, const Expr& condition, const std::string& user) {
    if (as_int(arith::size_of(facts_.type(condition))) != std::optional<int64_t>(1))
      return invalid_if(node, "its condition is no single element");
    std::array<Exprs, 2> results;
    for (size_t i = 0; i < 2; ++i) {
      const Graph* branch = branch_of(node, i == 0 ? kThen : kElse);
      if (branch == nullptr) return {};
      results[i] = import_branch(*branch, node, user);
      if (results[i].empty() || std::count(results[i].begin(), results[i].end(), Expr()) > 0) return {};
    }
    for (size_t i = 0; i < results[0].size(); ++i) {
      const Type types[] = {facts_.type(results[0][i]), facts_.type(results[1][i])};
      if (structural_equal(types[0], types[1])) continue;
      refuse(
          node_label(node), "If", HR_REASON_DATA_DEPENDENT,
          fmt::format("its branches give output {} as {} and as {}; only equal types are supported where the condition "
                      "is not known when the model is imported",
                      i, to_string(types[0]), to_string(types[1])));
      return {};
    }
    return make_choice(node, condition, results);
  }

  Exprs make_choice(const Node& node, const Expr& condition, const std::array<Exprs, 2>& results) {
    const Span span = make_span(node_label(node));
    const auto as_one = [&](const Exprs& outputs) {
      return outputs.size() == 1 ? outputs[0] : Expr(relay::make_tuple({outputs.begin(), outputs.end()}, span));
    };
    const bool is_scalar = facts_.type(condition)->shape.empty();
    const Expr scalar = is_scalar ? condition : ops::reshape(condition, Shape(), false, span);
    const Expr choice = facts_.typed(relay::make_if(scalar, as_one(results[0]), as_one(results[1]), span));
    if (results[0].size() == 1) return {choice};
    Exprs outputs;
    for (size_t i = 0; i < results[0].size(); ++i)
      outputs.push_back(facts_.typed(relay::make_tuple_get_item(choice, static_cast<int64_t>(i), span)));
    return outputs;
  }

  // Imports a subgraph, which can use the names of the surrounding graphs, and returns its outputs. Removes its own
  // names afterwards.
  Exprs import_branch(const Graph& graph, const Node& node, const std::string& user) {
    if (!graph.inputs.empty() || graph.outputs.size() != node.outputs.size()) {
      refuse(node_label(node), "If", HR_REASON_BAD_MODEL,
             fmt::format("its branch has {} inputs and {} outputs, expected 0 and {}", graph.inputs.size(),
                         graph.outputs.size(), node.outputs.size()));
      return {};
    }
    const size_t outer = defined_.size();
    import_graph(graph);
    Exprs outputs;
    for (const ValueInfo& output : graph.outputs) outputs.push_back(find(output.name, user));
    for (; defined_.size() > outer; defined_.pop_back()) slots_.erase(defined_.back());
    return outputs;
  }

  Exprs import_operator(const Node& node, const std::string& user) {
    const OpRow* row = row_of(node);
    Exprs inputs;
    bool is_whole = row == nullptr || is_well_formed(node, row);
    for (std::string_view name : node.inputs) {
      inputs.push_back(name.empty() ? Expr() : find(name, user));
      is_whole = is_whole && (name.empty() || inputs.back());
    }
    if (row == nullptr && is_model_function(node)) {
      refuse(node_label(node), op_label(node), HR_REASON_OP_UNSUPPORTED,
             "it is a function of the model; inline the model's functions before importing it");
      return {};
    }
    if (row == nullptr && (is_whole || !foreign_.is_asked()))
      return import_foreign(node, inputs, {HR_REASON_OP_UNSUPPORTED, "the operator is not supported"});
    return is_whole ? convert(node, *row, inputs) : Exprs();
  }

  // Imports a node that a backend claims, and returns its outputs; otherwise reports why it is not imported.
  Exprs import_foreign(const Node& node, const Exprs& inputs, const Refused& refused) {
    std::string message = refused.message;
    if (foreign_.is_asked() && refused.reason != HR_REASON_BAD_MODEL) {
      Expected<Exprs> outputs = foreign_.import(node, inputs, facts_);
      if (outputs) return std::move(outputs.value());
      if (!outputs.refusal().message.empty()) message += fmt::format(" ({})", outputs.refusal().message);
    }
    refuse(node_label(node), op_label(node), refused.reason, std::move(message), refused.value);
    return {};
  }

  // Imports a node and returns its outputs. If it is refused, reports why and returns no outputs.
  Exprs convert(const Node& node, const OpRow& row, const Exprs& inputs) {
    const std::string label = node_label(node);
    try {
      Exprs sources;
      for (const Expr& input : inputs) {
        if (input) sources.push_back(input);
      }
      NodeContext context(node, opset_, inputs, facts_, tensors_, make_span(label));
      Exprs outputs = row.convert(context);
      check_outcome(context, outputs);
      for (Expr& output : outputs) {
        if (output) output = facts_.folded(output, sources);
      }
      return outputs;
    } catch (const Refused& refused) {
      return import_foreign(node, inputs, refused);
    } catch (const UserError& error) {
      refuse(label, op_label(node), HR_REASON_BAD_MODEL, error.message());
    }
    return {};
  }

  static void check_outcome(const NodeContext& context, const Exprs& outputs) {
    if (const auto unread = context.unread_attrs(); !unread.empty()) {
      context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "attribute {} is not supported",
                     printable(std::string(unread[0])));
    }
    for (size_t i = 0; i < context.output_count(); ++i) {
      if (context.wants(i) && (i >= outputs.size() || !outputs[i]))
        context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "its output {} is not supported", i);
    }
  }

  Expr make_body(ImportedModel& result) {
    Array<Expr> items;
    if (model_.graph.outputs.empty()) refuse_graph("the graph has no outputs");
    std::set<std::string_view> names;
    for (const ValueInfo& output : model_.graph.outputs) {
      if (!names.insert(output.name).second)
        refuse_graph(fmt::format("the output {} is listed twice", printable(output.name)));
      if (const Expr expr = find(output.name, "the list of graph outputs")) {
        items.push_back(expr);
        const std::string wrong = output_contradiction(output, facts_.type(expr));
        if (!wrong.empty()) refuse_graph(wrong);
      }
      result.outputs.emplace_back(output.name);
    }
    return items.size() == 1 ? items[0] : Expr(relay::make_tuple(items));
  }

  const Model& model_;
  std::vector<NodeRefusal> refusals_;
  int64_t opset_;
  TensorSource tensors_;
  Facts facts_;
  std::vector<GraphInput> inputs_;
  ForeignNodes foreign_;
  std::unordered_map<std::string_view, Slot> slots_;
  std::vector<std::string_view> defined_;          // the keys of slots_, in order
  std::unordered_set<std::string_view> produced_;  // by some node
  std::unordered_set<std::string> told_;           // what is wrong with the graph
};

}  // namespace

ImportedModel import_model(const Model& model, const ImportOptions& options) {
  ops::register_all_ops();
  return Importer(model, options).run();
}

}  // namespace headrace::onnx
