#include "passes/fuse/defuse_ops.h"

#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;

namespace {

Expr body_of(const FunctionNode& function, const Array<Expr>& args) {
  std::unordered_map<const Object*, Expr> values;
  for (size_t i = 0; i < args.size(); ++i) values.emplace(function.params[i].object(), args[i]);
  return relay::rewrite_post_order(function.body, [&](const Expr& before, const Expr& after) {
    const auto value = values.find(before.object());
    return value == values.end() ? after : value->second;
  });
}

}  // namespace

IRModule defuse_ops(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [](const Expr&, const Expr& after) {
      const auto* call = after.as<CallNode>();
      const auto* function = call == nullptr ? nullptr : call->op.as<FunctionNode>();
      const bool is_group = function != nullptr && relay::is_primitive(*function) &&
                            !function->attrs.contains(relay::kCompiler) && function->params.size() == call->args.size();
      return is_group ? body_of(*function, call->args) : after;
    });
  });
}

}  // namespace headrace::passes
