#include "passes/simplify/remove_standalone_reshapes.h"

#include "ops/op_keys.h"
#include "ops/tensor/shape.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/infer/type_match.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;

namespace {

// The operand of a call of a group that only reshapes; null for any other expression.
Expr reshaped(const Expr& expr) {
  const auto* call = expr.as<CallNode>();
  const auto* group = call == nullptr ? nullptr : call->op.as<FunctionNode>();
  if (group == nullptr || !relay::is_primitive(*group) || call->args.size() != 1) return {};
  Expr at = group->body;
  while (const auto* inner = at.as<CallNode>()) {
    const OpNode* op = inner->as_op();
    if (op == nullptr || op->find(ops::kKeepsElements) == nullptr) return {};
    at = inner->args[0];
  }
  return at == group->params[0] ? call->args[0] : Expr();
}

class ReshapeRemover {
 public:
  Expr rewrite(const Expr& before, const Expr& after) {
    Expr result = shorter(before, after);
    if (before->has_checked_type()) types_.emplace(result.object(), before->checked_type());
    return result;
  }

 private:
  Expr shorter(const Expr& before, const Expr& after) const {
    const Expr data = reshaped(after);
    if (!data) return after;
    const Expr inner = reshaped(data);
    const Expr source = inner ? inner : data;
    const Type& from = types_.at(source.object());
    const auto* to = relay::tensor_type_of(before);
    // Two unknown dimensions `?` may have different sizes.
    if (!relay::has_unknown_dim(from) && relay::same_type(from, before->checked_type())) return source;
    const auto shape = as_shape(to->shape);
    return inner && shape ? group(*after.as<CallNode>(), source, from, *shape) : after;
  }

  static Expr group(const CallNode& call, const Expr& data, const Type& type, const Shape& shape) {
    const auto param = relay::make_var("p", type, call.span);
    const bool has_zero = std::find(shape.begin(), shape.end(), 0) != shape.end();
    const Expr body = ops::reshape(param, shape, has_zero, call.span);
    const DictAttrs& attrs = call.op.as<FunctionNode>()->attrs;
    return relay::make_call(Expr(relay::make_function({param}, body, {}, {}, attrs, call.op->span)), {data}, Attrs(),
                            Array<Type>(), call.span);
  }

  std::unordered_map<const Object*, Type> types_;
};

}  // namespace

IRModule remove_standalone_reshapes(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    ReshapeRemover remover;
    return relay::rewrite_post_order(
        body, relay::is_entered, [&](const Expr& before, const Expr& after) { return remover.rewrite(before, after); });
  });
}

}  // namespace headrace::passes
