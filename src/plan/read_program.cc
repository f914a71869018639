#include "plan/read_program.h"

#include <headrace/reason.h>

#include <algorithm>

#include "ops/loops/dims.h"
#include "ops/op_keys.h"
#include "passes/forms/bound_outputs.h"
#include "plan/check_fused.h"
#include "plan/tensor_group.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
#include "relay/regions.h"
#include "relay/visit.h"

namespace headrace::plan {

using relay::CallNode;
using relay::ConstantNode;
using relay::Function;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::VarNode;

namespace {

// Explains constructs that a fixed list of steps cannot express.
constexpr std::string_view kNotYet =
    "is control flow, which artifacts do not have yet; the pass PartialEvaluate may leave none, and in Python "
    "relay.create_executor(\"debug\") runs it";

std::string what_is(const Expr& expr) {
  if (expr.is<relay::IfNode>()) return "`if`";
  if (expr.is<relay::MatchNode>() || expr.is<ConstructorNode>()) return "a data type";
  if (expr.is<GlobalVarNode>() || expr.is<FunctionNode>()) return "a function as a value";
  return fmt::format("{}", expr->key());  // a reference's
}

// Returns the parameter whose elements, in their order, are the group's whole result; nothing for a group that
// computes.
std::optional<size_t> reshaped_parameter(const FunctionNode& group) {
  Expr at = group.body;
  while (const auto* call = at.as<CallNode>()) {
    const OpNode* op = call->as_op();
    if (op == nullptr || op->find(ops::kKeepsElements) == nullptr) return std::nullopt;
    at = call->args[0];
  }
  for (size_t i = 0; i < group.params.size(); ++i) {
    if (at == group.params[i]) return i;
  }
  return std::nullopt;
}

// Returns the op that gives the value, of a group the last one; for messages.
std::string name_of(const Expr& expr) {
  const auto* call = expr.as<CallNode>();
  const auto* group = call == nullptr ? nullptr : call->op.as<FunctionNode>();
  const auto* last = group == nullptr ? call : group->body.as<CallNode>();
  return last != nullptr && last->as_op() != nullptr ? last->as_op()->name : "compile";
}

// Returns "; they are read by cast, my.norm": the ops among which is one that cannot handle such a size. Empty when
// none reads it.
std::string readers_of_unknown_sizes(const Expr& body) {
  std::vector<std::string> names;
  relay::post_order(body, [&](const Expr& expr) {
    const auto* call = expr.as<CallNode>();
    if (call == nullptr || call->as_op() == nullptr) return;
    const bool reads = std::any_of(call->args.begin(), call->args.end(),
                                   [](const Expr& arg) { return relay::has_unknown_dim(arg->checked_type()); });
    const std::string& name = call->as_op()->name;
    if (reads && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  });
  return names.empty() ? "" : fmt::format("; they are read by {}", fmt::join(names, ", "));
}

class Reader {
 public:
  Reader(const IRModule& module, GroupTable& groups) : module_(module), groups_(groups) {}

  Program read(const Function& main) {
    body_ = main->body;
    for (const relay::Var& param : main->params) add_parameter(param);
    relay::post_order(
        main->body, [&](const Expr& expr) { return enter(expr); }, [&](const Expr& expr) { leave(expr); });
    Tensors results = tensors_of(main->body);
    take_extents(*main, results);
    make_outputs(results);
    return std::move(program_);
  }

 private:
  using Tensors = std::vector<size_t>;

  // Removes the extents from the results.
  void take_extents(const FunctionNode& main, Tensors& results) {
    const std::vector<passes::BoundedOutput> rows = passes::bounded_outputs_of(main);
    size_t num_outputs = results.size();
    for (const passes::BoundedOutput& row : rows) num_outputs = std::min(num_outputs, row.extent);
    for (const passes::BoundedOutput& row : rows)
      program_.bounded_outputs.push_back({.output = row.output, .axis = row.axis, .extent = results[row.extent]});
    results.resize(num_outputs);
  }

  // Turns storages that are results into the outputs themselves; other results are copied at the end.
  void make_outputs(const Tensors& results) {
    std::vector<std::pair<size_t, size_t>> copies;  // result, output
    for (size_t i = 0; i < results.size(); ++i) {
      const View result = program_.views[results[i]];
      const bool is_output = program_.bases[result.base].kind == Base::Kind::storage;
      if (!is_output) {
        program_.bases.emplace_back();
        copies.emplace_back(results[i], program_.views.size());
      }
      const size_t index = is_output ? result.base : program_.bases.size() - 1;
      Base& base = program_.bases[index];
      base.kind = Base::Kind::output;
      base.name = fmt::format("output{}", i);
      base.type = result.type;
      base.nbytes = span_bytes(result);
      // The first result of a storage is the whole of it.
      program_.outputs.push_back(program_.views.size());
      program_.views.push_back({.base = index, .type = result.type, .shape = result.shape});
    }
    for (const auto& [result, output] : copies) program_.steps.push_back({.inputs = {result}, .outputs = {output}});
  }

  bool enter(const Expr& expr) {
    if (const auto* let = expr.as<LetNode>()) let_values_[let->var.get()] = let->value;
    return !expr.is<FunctionNode>();
  }

  // Returns the tensors of a value; UserError for one that is not a tensor, such as a function.
  const Tensors& tensors_of(const Expr& expr) const {
    const auto it = tensors_.find(expr.get());
    if (it == tensors_.end()) throw_at(expr->span, "compile", fmt::format("{} {}", what_is(expr), kNotYet));
    return it->second;
  }

  void leave(const Expr& expr) {
    if (expr.is<OpNode>() || expr.is<FunctionNode>() || expr.is<GlobalVarNode>()) return;  // callees have no tensors
    if (const auto* call = expr.as<CallNode>()) return leave_call(expr, *call);
    if (const auto* constant = expr.as<ConstantNode>()) return leave_constant(expr, *constant);
    Tensors& own = tensors_[expr.get()];
    if (const auto* var = expr.as<VarNode>()) {
      const auto bound = let_values_.find(var);
      if (bound != let_values_.end()) own = tensors_of(bound->second);
    } else if (const auto* let = expr.as<LetNode>()) {
      own = tensors_of(let->body);
    } else if (const auto* tuple = expr.as<TupleNode>()) {
      for (const Expr& item : tuple->items) {
        const Tensors& more = tensors_of(item);
        own.insert(own.end(), more.begin(), more.end());
      }
    } else if (const auto* item = expr.as<TupleGetItemNode>()) {
      own = relay::leaves_of_item(*item, tensors_of(item->tuple));
    } else {
      throw_at(expr->span, std::string(expr->key()), fmt::format("{} {}", what_is(expr), kNotYet));
    }
  }

  void leave_call(const Expr& expr, const CallNode& call) {
    const Function region = relay::region_of(call, module_);
    const Function group = region ? Function() : call.op.cast<FunctionNode>();
    if (!region && !relay::is_primitive(group)) {
      const OpNode* op = call.as_op();
      HEADRACE_CHECK(op == nullptr, "'{}' is in no group: FuseOps has not run", op->name);
      throw_at(call.span, "call",
               fmt::format("a call of a function that is a value of the run, or that calls itself, {}", kNotYet));
    }
    Tensors& own = tensors_[expr.get()];
    const auto source = region ? std::nullopt : reshaped_parameter(*group.get());
    if (source && tensors_of(call.args[*source]).size() == 1) {
      own = {add_view(expr, tensor_type(expr, call.checked_type()),
                      program_.views[tensors_of(call.args[*source])[0]].base)};
      return;
    }
    Tensors inputs;
    for (const Expr& arg : call.args) {
      const Tensors& more = tensors_of(arg);
      inputs.insert(inputs.end(), more.begin(), more.end());
    }
    const std::vector<Type> leaves = leaves_of(call.checked_type());
    if (!region && leaves.empty()) return;  // a mark of the empty tuple: nothing to compute
    for (const Type& leaf : leaves) {
      const size_t base = program_.bases.size();
      program_.bases.emplace_back();
      own.push_back(add_view(expr, tensor_type(expr, leaf), base));
      program_.bases[base].nbytes = span_bytes(program_.views.back());
    }
    const size_t function = region ? add_region(call, region) : add_group(group);
    program_.steps.push_back({.function = function, .inputs = std::move(inputs), .outputs = own, .span = call.span});
  }

  size_t add_group(const Function& group) {
    const Function taken = with_tensor_parameters(group);
    return add_function(groups_.add(taken), taken);
  }

  // A region keeps its name: that is what its compiler's module knows it by. partition/place.h checked the names.
  size_t add_region(const CallNode& call, const Function& region) {
    const std::string name = relay::region_name(call, *region);
    GlobalVar& var = regions_[name];
    if (!var) var = make_global_var(name);
    return add_function(var, with_tensor_parameters(region));
  }

  size_t add_function(const GlobalVar& name, const Function& function) {
    const auto [known, is_new] = functions_.emplace(name.object(), program_.functions.size());
    if (is_new) program_.functions.emplace_back(name, function);
    return known->second;
  }

  void leave_constant(const Expr& expr, const ConstantNode& constant) {
    const TensorType type = constant.tensor_type();
    Base base{.kind = Base::Kind::constant, .type = type, .constant = expr.cast<ConstantNode>(), .span = expr->span};
    base.nbytes = static_cast<int64_t>(constant.data.size_bytes());
    program_.bases.push_back(std::move(base));
    tensors_[expr.get()] = {add_view(expr, type, program_.bases.size() - 1)};
  }

  void add_parameter(const relay::Var& param) {
    check_parameter(*param.get());
    const TensorType type = tensor_type(param, param->checked_type());
    program_.bases.push_back({.kind = Base::Kind::input, .name = param->name_hint, .type = type, .span = param->span});
    program_.inputs.push_back(add_view(param, type, program_.bases.size() - 1));
    program_.bases.back().nbytes = span_bytes(program_.views.back());
    tensors_[param.get()] = {program_.inputs.back()};
  }

  static void check_parameter(const VarNode& param) {
    const Type& type = param.checked_type();
    const auto fail = [&](std::string_view why) {
      throw_at(param.span, "compile", fmt::format("parameter %{} is {}: {}", param.name_hint, to_string(type), why));
    };
    const auto* tensor = type.as<TensorTypeNode>();
    if (tensor == nullptr)
      fail(
          "a compiled program takes tensors; give the fields of a tuple as parameters of their own, and call a "
          "function by its name in the module");
    if (!as_shape(tensor->shape))
      fail(
          "it has no static shape, which compiled code needs; write numbers for its dimensions, in all types that "
          "name them");
  }

  size_t add_view(const Expr& expr, const TensorType& type, size_t base) {
    const auto shape = as_shape(type->shape);
    if (!shape) {
      const std::string fault = ops::unknown_size_fault(type);
      throw_at(expr->span, name_of(expr),
               fault.empty() ? fmt::format("{} has no static shape, which compiled code needs; fix the shapes of the "
                                           "inputs",
                                           to_string(Type(type)))
                             : fault + readers_of_unknown_sizes(body_));
    }
    program_.views.push_back({.base = base, .type = type, .shape = *shape});
    return program_.views.size() - 1;
  }

  static TensorType tensor_type(const Expr& expr, const Type& type) {
    if (!type.is<TensorTypeNode>())
      throw_at(expr->span, "compile", fmt::format("expected a tensor, got {}", to_string(type)));
    return type.cast<TensorTypeNode>();
  }

  const IRModule& module_;
  GroupTable& groups_;
  Expr body_;
  Program program_;
  std::unordered_map<const ExprNode*, Tensors> tensors_;
  std::unordered_map<const VarNode*, Expr> let_values_;
  std::unordered_map<const Object*, size_t> functions_;  // by their global variables
  std::map<std::string, GlobalVar> regions_;
};

}  // namespace

Program read_program(const IRModule& module, GroupTable& groups) {
  const Function main = module->lookup("main").cast<FunctionNode>();
  check_fused(main);
  return Reader(module, groups).read(main);
}

}  // namespace headrace::plan
