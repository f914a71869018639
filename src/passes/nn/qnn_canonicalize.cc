#include "passes/nn/qnn_canonicalize.h"

#include "ops/op_facts.h"
#include "passes/rewrite/rewrite_calls.h"

namespace headrace::passes {

IRModule qnn_canonicalize(const IRModule& module) {
  const auto find = [](const OpNode& op) {
    const ops::PlainFormFn* form = op.find(ops::kPlainForm);
    return form == nullptr ? CallRewriteFn() : CallRewriteFn(*form);
  };
  return rewrite_calls(module, {.what = "plain form", .attr = ops::kPlainForm.name, .find = find});
}

}  // namespace headrace::passes
