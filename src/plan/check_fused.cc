#include "plan/check_fused.h"

#include <unordered_set>

#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::plan {

using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;

namespace {

[[noreturn]] void fail(const Span& span, std::string_view message) { throw_at(span, "compile", std::string(message)); }

void check_tensors(const Span& span, const Type& type, std::string_view what) {
  for (const Type& leaf : leaves_of(type)) {
    if (!leaf.is<TensorTypeNode>())
      fail(span, fmt::format("a function marked Primitive has {} of type {}; it may have tensors and tuples of them",
                             what, to_string(type)));
  }
}

// Returns a description of an expression that may not be in a group; empty for one that may.
std::string stranger(const Expr& expr, const std::unordered_set<const Object*>& params) {
  if (expr.is<OpNode>() || expr.is<relay::TupleNode>() || expr.is<relay::TupleGetItemNode>()) return {};
  if (const auto* var = expr.as<relay::VarNode>())
    return params.contains(var) ? "" : fmt::format("the variable %{}, which is not a parameter of it", var->name_hint);
  if (const auto* call = expr.as<CallNode>()) return call->as_op() != nullptr ? "" : "a call of what is not an op";
  if (const auto* constant = expr.as<ConstantNode>()) {
    const int64_t count = constant->data.num_elements();
    return count == 1 ? "" : fmt::format("a constant of {} elements, which must come in as an argument", count);
  }
  return fmt::format("a {}", expr->key());
}

void check_group(const FunctionNode& group) {
  std::unordered_set<const Object*> params;
  for (const relay::Var& param : group.params) {
    params.insert(param.get());
    check_tensors(group.span, param->checked_type(), "a parameter");
  }
  check_tensors(group.span, group.body->checked_type(), "a result");
  // On the way down: a let is named before the variable that it binds.
  const auto enter = [&](const Expr& expr) {
    const std::string found = stranger(expr, params);
    if (found.empty()) return true;
    fail(expr->span ? expr->span : group.span,
         fmt::format("a function marked Primitive holds {}; it is compiled as one kernel and may hold calls of ops, "
                     "tuples and constants of one element: remove the attribute, and FuseOps makes such functions",
                     found));
  };
  relay::post_order(group.body, enter, [](const Expr&) {});
}

}  // namespace

void check_fused(const relay::Function& main) {
  if (relay::is_left_alone(*main)) {
    fail(main->span,
         "main is marked Primitive, Compiler or SkipOptimization, so that no pass makes kernels of its ops: remove the "
         "attribute");
  }
  const auto enter = [](const Expr& expr) {
    const auto* function = expr.as<FunctionNode>();
    if (function == nullptr) return true;
    const bool is_group = relay::is_primitive(*function) && !relay::compiler_of(*function);
    if (is_group) check_group(*function);
    return false;
  };
  relay::post_order(main->body, enter, [](const Expr&) {});
}

}  // namespace headrace::plan
