#include "passes/pipeline.h"

#include "passes/dead_code_elimination.h"
#include "passes/dynamic_to_static.h"
#include "passes/eliminate_common_subexpr.h"
#include "passes/fold_constant.h"
#include "passes/fold_scale_axis.h"
#include "passes/fuse_ops.h"
#include "passes/simplify_expr.h"
#include "passes/simplify_inference.h"

namespace headrace::passes {

using pass::Pass;
using pass::PassContext;

namespace {

template <IRModule (*pass)(const IRModule&)>
Pass plain(std::string name, int32_t opt_level) {
  return {{std::move(name), opt_level, {}}, [](const IRModule& m, const PassContext&) { return pass(m); }};
}

}  // namespace

// Any of them may be left out, so none requires another; the order is what makes each find what it looks for.
std::vector<Pass> canonical() {
  return {
      plain<simplify_inference>("SimplifyInference", 0),  // batch norm: arithmetic of constants
      plain<dynamic_to_static>("DynamicToStatic", 0),     // shape arithmetic: constants and attributes
      {{"FoldConstant", 2, {}}, [](const IRModule& m, const PassContext& c) { return fold_constant(m, c); }},
      {{"FoldScaleAxis", 2, {}}, [](const IRModule& m, const PassContext& c) { return fold_scale_axis(m, c); }},
      plain<simplify_expr>("SimplifyExpr", 1),  // joins the additions that folded scales bring together
      plain<eliminate_common_subexpr>("EliminateCommonSubexpr", 2),
      plain<dead_code_elimination>("DeadCodeElimination", 1),
  };
}

std::vector<Pass> native() {
  return {
      {{"FuseOps", 0, {}}, [](const IRModule& m, const PassContext& c) { return fuse_ops(m, fuse_options(c)); }},
  };
}

}  // namespace headrace::passes
