#include "passes/forms/to_graph_normal_form.h"

#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/inline_lets.h"

namespace headrace::passes {

IRModule to_graph_normal_form(const IRModule& module) {
  const InOrder ordered = in_order(module);
  return rewrite_bodies(ordered.module, [&](const Expr& body) {
    return inline_lets(body, ordered.effects, [](const relay::LetNode&) { return true; });
  });
}

}  // namespace headrace::passes
