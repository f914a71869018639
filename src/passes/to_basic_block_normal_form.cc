#include "passes/to_basic_block_normal_form.h"

#include "passes/for_each_function.h"
#include "passes/place_lets.h"

namespace headrace::passes {

IRModule to_basic_block_normal_form(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) { return place_lets(body, Bind::across_branches); });
}

}  // namespace headrace::passes
