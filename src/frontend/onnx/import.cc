#include "frontend/onnx/import.h"

#include <array>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "arith/canonical.h"
#include "base/interrupt.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/foreign_node.h"
#include "frontend/onnx/graph_inputs.h"
#include "frontend/onnx/graph_outputs.h"
#include "frontend/onnx/model_functions.h"
#include "frontend/onnx/op_table.h"
#include "frontend/onnx/file/read_model.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "ops/tensor/shape.h"
#include "relay/infer/infer_type.h"

namespace headrace::onnx {

namespace {

// The value of a name.
struct Slot {
  Expr expr;                            // null: it could not be imported, for a reason in the list of refusals
  const TensorProto* tensor = nullptr;  // an initialiser that was not used yet
  bool is_omitted = false;              // an input of a function that the call leaves out
};

// The names of the graph, or those of a function while its nodes are imported.
struct Scope {
  std::unordered_map<std::string_view, Slot> slots;
  std::vector<std::string_view> defined;          // the keys of `slots`, in order
  std::unordered_set<std::string_view> produced;  // by some node
  const FunctionCall* call = nullptr;             // null: the graph
};

// Subgraphs and calls within each other; it bounds the use of the stack.
constexpr int kMostNested = kMaxGraphDepth + kMostNestedCalls;

// Returns why a node that is not a supported operator is not imported.
std::string unsupported_message(const Node& node) {
  if (node.domain != "com.microsoft.nchwc") return "the operator is not supported";
  return "it is in a layout that onnxruntime chose for one machine; save the model with the optimisation level "
         "ORT_ENABLE_EXTENDED or a lower one";
}

// A call with a longer label is named by its number, so that the labels of its nodes stay short.
constexpr size_t kMostLabelBytes = 200;

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options)
      : model_(model),
        opset_(default_opset(model)),
        tensors_(model),
        inputs_(resolve_inputs(model, options, refusals_)),
        has_asked_backends_(static_cast<bool>(options.claim)),
        foreign_(model, options.claim, inputs_),
        functions_(model) {}

  ImportedModel run() {
    define_inputs();
    for (const std::string& name : functions_.repeated())
      refuse_graph(fmt::format("the model defines the function {} several times", printable(name)));
    import_graph(model_.graph);
    ImportedModel result;
    const Expr body = make_body(result);
    if (!refusals_.empty()) throw ImportError(std::move(refusals_), model_.source, has_asked_backends_);
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
  // Reports a mistake of a node; one that every call of a function repeats is reported for its first call.
  void refuse(const Node& node, hr_reason reason, std::string message, std::string_view value = {}) {
    if (scope_.call != nullptr) {
      if (!told_.insert(fmt::format("{} {}", static_cast<const void*>(&node), message)).second) return;
      message += fmt::format(" (in the function {})", function_label(*scope_.call->function));
    }
    refusals_.push_back({.node = node_label(node, scope_.call),
                         .op = op_label(node),
                         .reason = reason,
                         .message = std::move(message),
                         .value = outer_name(value),
                         .may_be_claimed = !node.has_graphs()});
  }
  void refuse_value(hr_reason reason, std::string message) {
    refusals_.push_back({.node = "", .op = "", .reason = reason, .message = std::move(message), .value = ""});
  }

  // Returns the name in the graph of a value that a node refers to; empty if it has none there.
  std::string outer_name(std::string_view name) const {
    for (const FunctionCall* call = scope_.call; call != nullptr && !name.empty(); call = call->caller) {
      const std::vector<std::string_view>& inputs = call->function->inputs;
      const auto i = static_cast<size_t>(std::find(inputs.begin(), inputs.end(), name) - inputs.begin());
      name = i < inputs.size() && i < call->node->inputs.size() ? call->node->inputs[i] : std::string_view();
    }
    return std::string(name);
  }

  // Names a node in messages about values.
  std::string user_label(const Node& node) const {
    std::string text = fmt::format("node {} ({})", printable(node_label(node, scope_.call)), escaped(op_label(node)));
    if (scope_.call != nullptr) text += fmt::format(" of the function {}", function_label(*scope_.call->function));
    return text;
  }

  // Reports a mistake of the graph. The same message, such as that of a missing file of many tensors, is reported once.
  void refuse_graph(std::string message) {
    if (told_.insert(message).second) refuse_value(HR_REASON_BAD_MODEL, std::move(message));
  }

  void define(std::string_view name, Slot slot, std::string_view what) {
    if (name.empty()) return refuse_graph(fmt::format("{} has no name", what));
    if (scope_.slots.emplace(name, std::move(slot)).second) {
      scope_.defined.push_back(name);
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
    import_nodes(graph.nodes);
  }

  void import_nodes(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) scope_.produced.insert(node.outputs.begin(), node.outputs.end());
    for (const Node& node : nodes) import_node(node);
  }

  void define_initializers(const Graph& graph) {
    for (const TensorProto& tensor : graph.initializers) define(tensor.name, {{}, &tensor}, "an initialiser");
    for (const SparseTensorProto& tensor : graph.sparse_initializers) {
      define(tensor.values.name, {}, "a sparse initialiser");
      refuse_value(HR_REASON_DTYPE_UNSUPPORTED,
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
      refuse_value(refused.reason, refused.message);
    } catch (const UserError& error) {
      refuse_graph(error.message());
    }
  }

  // Returns the value of a name. If there is none, reports the reason once and returns null.
  Expr find(std::string_view name, const std::string& user) {
    const auto it = scope_.slots.find(name);
    if (it == scope_.slots.end()) {
      refuse_graph(scope_.produced.contains(name)
                       ? fmt::format("{} uses {} before the node that makes it; the nodes are not in topological "
                                     "order, or depend on each other in a cycle",
                                     user, printable(name))
                       : fmt::format("{} uses {}, which nothing defines", user, printable(name)));
      return {};
    }
    if (it->second.is_omitted)
      refuse_graph(
          fmt::format("{} needs {}, an input of the function that the call leaves out", user, printable(name)));
    if (it->second.tensor != nullptr) load(name, it->second);
    return it->second.expr;
  }

  // Returns whether the name stands for no value: it is empty, or names an input that a call leaves out.
  bool is_left_out(std::string_view name) const {
    if (name.empty() || scope_.call == nullptr) return name.empty();
    const auto it = scope_.slots.find(name);
    return it != scope_.slots.end() && it->second.is_omitted;
  }

  // Returns the version of the default operator set that the nodes of the current scope use.
  int64_t current_opset() const { return scope_.call != nullptr ? scope_.call->opset : opset_; }

  // Returns whether all checks hold that need the table's row and not the inputs. If one fails, reports it.
  bool is_well_formed(const Node& node, const OpRow* row) {
    if (current_opset() < row->since) {
      refuse(node, HR_REASON_BAD_MODEL,
             fmt::format("the operator exists since opset {}, but the {} imports opset {}; export it with opset {} or "
                         "later",
                         row->since, scope_.call != nullptr ? "function" : "model", current_opset(), row->since));
      return false;
    }
    const auto count = static_cast<int>(node.inputs.size());
    if (count < row->least_inputs || (row->most_inputs != kAny && count > row->most_inputs)) {
      const std::string most = row->most_inputs == kAny ? "any number" : std::to_string(row->most_inputs);
      refuse(node, HR_REASON_BAD_MODEL,
             fmt::format("it has {} inputs; the operator takes {} to {}", count, row->least_inputs, most));
      return false;
    }
    const size_t needed = row->most_inputs == kAny ? node.inputs.size() : static_cast<size_t>(row->least_inputs);
    const auto gap = std::find_if(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(needed),
                                  [&](std::string_view name) { return is_left_out(name); });
    if (const auto i = static_cast<size_t>(gap - node.inputs.begin()); i < needed) {
      refuse(node, HR_REASON_BAD_MODEL, fmt::format("input {} is left out, but the operator needs it", i));
      return false;
    }
    std::unordered_set<std::string_view> names;
    for (const Attribute& attribute : node.attributes) {
      if (names.insert(attribute.name).second) continue;
      refuse(node, HR_REASON_BAD_MODEL, fmt::format("attribute {} is given twice", printable(attribute.name)));
      return false;
    }
    return true;
  }

  void import_node(const Node& node) {
    poll_interrupt();
    const std::string user = user_label(node);
    const ModelFunction* function = functions_.find(node);
    if (function != nullptr) return define_outputs(node, import_call(node, *function, user), user);
    const bool is_if = node.op_type == "If" && is_default_domain(node.domain);
    define_outputs(node, is_if ? import_if(node, user) : import_operator(node, user), user);
  }

  // Imports the nodes of a function in place of a call, and returns its outputs. If the call is refused, reports why
  // and returns no outputs.
  Exprs import_call(const Node& node, const ModelFunction& function, const std::string& user) {
    FunctionCall call{.function = &function, .node = &node, .caller = scope_.call, .label = {}, .attributes = {}};
    call.opset = default_opset(function).value_or(current_opset());
    call.label = node_label(node, scope_.call);
    ++calls_;
    if (call.label.size() > kMostLabelBytes) call.label = fmt::format("call_{}", calls_);
    std::string wrong = mistake_of(call);
    if (wrong.empty()) wrong = bind_attributes(call);
    if (wrong.empty()) wrong = functions_.admit(call);
    if (!wrong.empty()) {
      refuse(node, HR_REASON_BAD_MODEL, std::move(wrong));
      return {};
    }
    Scope own{.slots = {}, .defined = {}, .produced = {}, .call = &call};
    const Slot omitted{.expr = {}, .tensor = nullptr, .is_omitted = true};
    std::vector<Slot> inputs;
    for (const std::string_view name : node.inputs)
      inputs.push_back(is_left_out(name) ? omitted : Slot{find(name, user)});
    inputs.resize(function.inputs.size(), omitted);
    std::swap(scope_, own);
    Exprs outputs = import_body(node, function, std::move(inputs));
    std::swap(scope_, own);
    return outputs;
  }

  // Returns why a call does not fit its function, in a sentence; empty if it does.
  std::string mistake_of(const FunctionCall& call) const {
    const ModelFunction& function = *call.function;
    const Node& node = *call.node;
    if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
      return fmt::format("it has {} inputs and {} outputs; the function takes up to {} and gives up to {}",
                         node.inputs.size(), node.outputs.size(), function.inputs.size(), function.outputs.size());
    if (const Node* user = default_opset(function) ? nullptr : find_default_node(function))
      return fmt::format(
          "the function uses the operator {} and imports no version of the default operator set; add one to its "
          "opset_import",
          printable(user->op_type));
    if (call.opset < kOldestOpset || call.opset > kNewestOpset)
      return fmt::format("the function uses version {} of the default operator set; versions {} to {} are supported",
                         call.opset, kOldestOpset, kNewestOpset);
    if (nested_ >= kMostNested) return fmt::format("calls and subgraphs are nested deeper than {} levels", kMostNested);
    return "";
  }

  // Imports the nodes of a function into the current scope, whose inputs have these values, and returns the outputs
  // that the node of the call wants.
  Exprs import_body(const Node& node, const ModelFunction& function, std::vector<Slot> inputs) {
    const std::string user = fmt::format("the function {}", function_label(function));
    ForeignNodes::Declarations outer = foreign_.enter_function();
    ++nested_;
    for (size_t i = 0; i < inputs.size(); ++i) define(function.inputs[i], std::move(inputs[i]), "an input of " + user);
    import_nodes(function.nodes);
    Exprs outputs;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string_view name = function.outputs[i];
      outputs.push_back(node.outputs[i].empty() ? Expr() : find(name, "the list of outputs of " + user));
    }
    --nested_;
    foreign_.leave_function(std::move(outer));
    return outputs;
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
    if (known.num_elements() != 1) return invalid_if(node, "its condition is not a single element");
    const Graph* branch = branch_of(node, element_as_int(known.tensor(), 0) != 0 ? kThen : kElse);
    return branch == nullptr ? Exprs() : import_branch(*branch, node, user);
  }

  static constexpr std::string_view kThen = "then_branch", kElse = "else_branch";

  Exprs invalid_if(const Node& node, std::string message) {
    refuse(node, HR_REASON_BAD_MODEL, std::move(message));
    return {};
  }

  // Returns the graph of a branch; reports that there is none and returns null.
  const Graph* branch_of(const Node& node, std::string_view name) {
    const Attribute* branch = node.find_attribute(name);
    if (branch != nullptr && branch->kind == AttributeKind::kGraph && branch->graphs.size() == 1)
      return &branch->graphs[0];
    invalid_if(node, fmt::format("attribute {} is not a graph", printable(name)));
    return nullptr;
  }

  Exprs import_choice(const Node& node, const Expr& condition, const std::string& user) {
    if (as_int(arith::size_of(facts_.type(condition))) != std::optional<int64_t>(1))
      return invalid_if(node, "its condition is not a single element");
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
          node, HR_REASON_DATA_DEPENDENT,
          fmt::format("its branches give output {} as {} and as {}; only equal types are supported where the condition "
                      "is not known when the model is imported",
                      i, to_string(types[0]), to_string(types[1])));
      return {};
    }
    return make_choice(node, condition, results);
  }

  Exprs make_choice(const Node& node, const Expr& condition, const std::array<Exprs, 2>& results) {
    const Span span = make_span(node_label(node, scope_.call));
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
    if (!graph.inputs.empty() || graph.outputs.size() != node.outputs.size())
      return invalid_if(node, fmt::format("its branch has {} inputs and {} outputs, expected 0 and {}",
                                          graph.inputs.size(), graph.outputs.size(), node.outputs.size()));
    if (nested_ >= kMostNested)
      return invalid_if(node, fmt::format("calls and subgraphs are nested deeper than {} levels", kMostNested));
    ++nested_;
    std::vector<std::string_view>& defined = scope_.defined;
    const size_t outer = defined.size();
    import_graph(graph);
    Exprs outputs;
    for (const ValueInfo& output : graph.outputs) outputs.push_back(find(output.name, user));
    for (; defined.size() > outer; defined.pop_back()) scope_.slots.erase(defined.back());
    --nested_;
    return outputs;
  }

  Exprs import_operator(const Node& node, const std::string& user) {
    const OpRow* row = node.overload.empty() ? find_op_row(node.domain, node.op_type) : nullptr;
    Exprs inputs;
    bool is_whole = row == nullptr || is_well_formed(node, row);
    for (std::string_view name : node.inputs) {
      inputs.push_back(is_left_out(name) ? Expr() : find(name, user));
      is_whole = is_whole && (inputs.back() || is_left_out(name));
    }
    if (!node.overload.empty()) {
      refuse(node, HR_REASON_BAD_MODEL,
             fmt::format("it calls the overload {} of a function, which the model does not define",
                         printable(node.overload)));
      return {};
    }
    if (row == nullptr && (is_whole || !foreign_.is_asked()))
      return import_foreign(node, inputs, {HR_REASON_OP_UNSUPPORTED, unsupported_message(node)});
    return is_whole ? convert(node, *row, inputs) : Exprs();
  }

  // Imports a node that a backend claims, and returns its outputs; otherwise reports why it is not imported.
  Exprs import_foreign(const Node& node, const Exprs& inputs, const Refused& refused) {
    std::string message = refused.message;
    if (foreign_.is_asked() && refused.reason != HR_REASON_BAD_MODEL) {
      Expected<Exprs> outputs = foreign_.import(node, inputs, facts_, scope_.call);
      if (outputs) return std::move(outputs.value());
      if (!outputs.refusal().message.empty()) message += fmt::format(" ({})", outputs.refusal().message);
    }
    refuse(node, refused.reason, std::move(message), refused.value);
    return {};
  }

  // Imports a node and returns its outputs. If it is refused, reports why and returns no outputs.
  Exprs convert(const Node& node, const OpRow& row, const Exprs& inputs) {
    try {
      Exprs sources;
      for (const Expr& input : inputs) {
        if (input) sources.push_back(input);
      }
      NodeContext context(node, current_opset(), inputs, facts_, tensors_, make_span(node_label(node, scope_.call)),
                          scope_.call);
      Exprs outputs = row.convert(context);
      check_outcome(context, outputs);
      for (Expr& output : outputs) {
        if (output) output = facts_.folded(output, sources);
      }
      return outputs;
    } catch (const Refused& refused) {
      return import_foreign(node, inputs, refused);
    } catch (const UserError& error) {
      refuse(node, HR_REASON_BAD_MODEL, error.message());
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
  bool has_asked_backends_ = false;  // backends have been asked about nodes that the importer has no form for
  ForeignNodes foreign_;
  ModelFunctions functions_;
  Scope scope_;
  int nested_ = 0;                        // the calls and subgraphs around the node that is imported
  int64_t calls_ = 0;                     // calls of functions so far
  std::unordered_set<std::string> told_;  // faults of the graph, and of nodes of functions, that were reported
};

}  // namespace

ImportedModel import_model(const Model& model, const ImportOptions& options) {
  ops::register_all_ops();
  return Importer(model, options).run();
}

}  // namespace headrace::onnx
