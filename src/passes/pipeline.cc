#include "passes/pipeline.h"

#include "passes/eliminate_common_subexpr.h"
#include "passes/fold_constant.h"
#include "passes/fuse_ops.h"
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

std::vector<Pass> native() {
  return {
      {{"FuseOps", 0, {}}, [](const IRModule& m, const PassContext& c) { return fuse_ops(m, fuse_options(c)); }},
  };
}

}  // namespace headrace::passes
