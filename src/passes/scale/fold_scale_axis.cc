#include "passes/scale/fold_scale_axis.h"

#include "passes/scale/backward_fold_scale_axis.h"
#include "passes/scale/forward_fold_scale_axis.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {

IRModule fold_scale_axis(const IRModule& module, const pass::PassContext& context, bool with_variables) {
  const IRModule folded = backward_fold_scale_axis(module, context, with_variables);
  return forward_fold_scale_axis(folded == module ? module : relay::infer_type(folded), context, with_variables);
}

}  // namespace headrace::passes
