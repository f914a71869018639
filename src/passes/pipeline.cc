#include "passes/pipeline.h"

#include "passes/eliminate_common_subexpr.h"
#include "passes/fold_constant.h"
#include "passes/simplify_inference.h"

namespace headrace::passes {

using pass::Pass;
using pass::PassContext;

std::vector<Pass> canonical() {
  return {
      {{"SimplifyInference", 0, {}}, [](const IRModule& m, const PassContext&) { return simplify_inference(m); }},
      {{"FoldConstant", 2, {}}, [](const IRModule& m, const PassContext& c) { return fold_constant(m, c); }},
      {{"EliminateCommonSubexpr", 3, {}},
       [](const IRModule& m, const PassContext&) { return eliminate_common_subexpr(m); }},
  };
}

}  // namespace headrace::passes
