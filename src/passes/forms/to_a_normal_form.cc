#include "passes/forms/to_a_normal_form.h"

#include "passes/rewrite/for_each_function.h"
#include "relay/place_lets.h"

namespace headrace::passes {

IRModule to_a_normal_form(const IRModule& module) {
  return rewrite_bodies(
      module, [](const Expr& body) { return relay::place_lets(body, relay::Bind::everything_and_constants); });
}

}  // namespace headrace::passes
