#include "passes/scale/fold_scale_axis.h"

#include "passes/scale/backward_fold_scale_axis.h"
#include "passes/scale/forward_fold_scale_axis.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {

IRModule fold_scale_axis(const IRModule& module, const pass::PassContext& context) {
  const IRModule folded = backward_fold_scale_axis(module, context);
  return forward_fold_scale_axis(folded == module ? module : relay::infer_type(folded), context);
}

}  // namespace headrace::passes
