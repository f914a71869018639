#include "plan/dataflow.h"

#include <headrace/reason.h>

#include <algorithm>

#include "ops/loops/dims.h"
#include "ops/op_keys.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
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

bool is_group(const Expr& callee) {
  const auto* function = callee.as<FunctionNode>();
  return function != nullptr && relay::is_primitive(*function);
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
  Dataflow read(const Function& main) {
    body_ = main->body;
    for (const relay::Var& param : main->params) add_parameter(param);
    relay::post_order(
        main->body, [&](const Expr& expr) { return enter(expr); }, [&](const Expr& expr) { leave(expr); });
    flow_.results = tensors_of(main->body);
    return std::move(flow_);
  }

 private:
  using Tensors = std::vector<size_t>;

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
    if (expr.is<OpNode>() || expr.is<FunctionNode>()) return;
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
    if (!is_group(call.op)) {
      const OpNode* op = call.as_op();
      HEADRACE_CHECK(op == nullptr, "'{}' is in no group: FuseOps has not run", op->name);
      throw_at(call.span, "call",
               fmt::format("a call of a function that only the run tells, or that calls itself, {}", kNotYet));
    }
    const Function group = call.op.cast<FunctionNode>();
    Tensors inputs;
    for (const Expr& arg : call.args) {
      const Tensors& more = tensors_of(arg);
      inputs.insert(inputs.end(), more.begin(), more.end());
    }
    Tensors& own = tensors_[expr.get()];
    const auto source = reshaped_parameter(*group.get());
    if (source && tensors_of(call.args[*source]).size() == 1) {
      own = {add_tensor(expr, tensor_type(expr, call.checked_type()),
                        flow_.tensors[tensors_of(call.args[*source])[0]].base)};
      return;
    }
    for (const Type& leaf : leaves_of(call.checked_type())) {
      const TensorType type = tensor_type(expr, leaf);
      const size_t base = flow_.bases.size();
      flow_.bases.emplace_back();
      own.push_back(add_tensor(expr, type, base));
      flow_.bases[base].nbytes = num_elements(flow_.tensors.back().shape) * static_cast<int64_t>(type->dtype.bytes());
    }
    flow_.steps.push_back({group, std::move(inputs), own, call.span});
  }

  void leave_constant(const Expr& expr, const ConstantNode& constant) {
    flow_.bases.push_back({.memory = Memory::constant, .expr = expr, .output = {}});
    tensors_[expr.get()] = {add_tensor(expr, constant.tensor_type(), flow_.bases.size() - 1)};
  }

  void add_parameter(const relay::Var& param) {
    check_parameter(*param.get());
    flow_.bases.push_back({.memory = Memory::parameter, .expr = param, .output = {}});
    tensors_[param.get()] = {add_tensor(param, tensor_type(param, param->checked_type()), flow_.bases.size() - 1)};
  }

  static void check_parameter(const VarNode& param) {
    const Type& type = param.checked_type();
    const auto fail = [&](std::string_view why) {
      throw_at(param.span, "compile", fmt::format("parameter %{} is {}: {}", param.name_hint, to_string(type), why));
    };
    const auto* tensor = type.as<TensorTypeNode>();
    if (tensor == nullptr)
      fail("a compiled program takes tensors; give the fields of a tuple as parameters of their own");
    if (!as_shape(tensor->shape))
      fail(
          "it has no static shape, which compiled code needs; write numbers for its dimensions, in all types that "
          "name them");
  }

  size_t add_tensor(const Expr& expr, const TensorType& type, size_t base) {
    const auto shape = as_shape(type->shape);
    if (!shape) {
      const std::string fault = ops::unknown_size_fault(type);
      throw_at(expr->span, name_of(expr),
               fault.empty() ? fmt::format("{} has no static shape, which compiled code needs; fix the shapes of the "
                                           "inputs",
                                           to_string(Type(type)))
                             : fault + readers_of_unknown_sizes(body_));
    }
    flow_.tensors.push_back({type, *shape, base});
    return flow_.tensors.size() - 1;
  }

  static TensorType tensor_type(const Expr& expr, const Type& type) {
    if (!type.is<TensorTypeNode>())
      throw_at(expr->span, "compile", fmt::format("expected a tensor, got {}", to_string(type)));
    return type.cast<TensorTypeNode>();
  }

  Expr body_;
  Dataflow flow_;
  std::unordered_map<const ExprNode*, Tensors> tensors_;
  std::unordered_map<const VarNode*, Expr> let_values_;
};

}  // namespace

Dataflow read_dataflow(const Function& main) { return Reader().read(main); }

}  // namespace headrace::plan
