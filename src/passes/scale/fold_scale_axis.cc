#include "passes/scale/fold_scale_axis.h"

namespace headrace::passes {

IRModule fold_scale_axis(IRModule module, const pass::PassContext& context, const std::vector<pass::Pass>& steps) {
  pass::PassContext own = context;
  if (context.is_required({.name = kFoldScaleAxis})) {
    for (const pass::Pass& step : steps) {
      if (!context.is_disabled(step.info)) own.required_pass.push_back(step.info.name);
    }
  }
  return pass::run_passes(steps, std::move(module), own);
}

}  // namespace headrace::passes
