#include "passes/forms/to_basic_block_normal_form.h"

#include "passes/rewrite/for_each_function.h"
#include "relay/place_lets.h"

namespace headrace::passes {

IRModule to_basic_block_normal_form(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) { return relay::place_lets(body, relay::Bind::across_branches); });
}

bool is_basic_block_normal_form(const Expr& expr) {
  const auto* function = expr.as<relay::FunctionNode>();
  const Expr body = function != nullptr ? function->body : expr;
  return relay::place_lets(body, relay::Bind::across_branches) == body;
}

}  // namespace headrace::passes
