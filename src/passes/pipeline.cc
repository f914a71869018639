#include "passes/pipeline.h"

#include "passes/devices/plan_devices.h"
#include "passes/fold/dead_code_elimination.h"
#include "passes/fold/dynamic_to_static.h"
#include "passes/fold/eliminate_common_subexpr.h"
#include "passes/fold/fold_constant.h"
#include "passes/fold/partial_evaluate.h"
#include "passes/forms/annotate_spans.h"
#include "passes/forms/bound_outputs.h"
#include "passes/forms/to_a_normal_form.h"
#include "passes/forms/to_basic_block_normal_form.h"
#include "passes/forms/to_graph_normal_form.h"
#include "passes/functions/defunctionalization.h"
#include "passes/functions/eta_expand.h"
#include "passes/functions/inline.h"
#include "passes/functions/lambda_lift.h"
#include "passes/functions/remove_unused_functions.h"
#include "passes/fuse/defuse_ops.h"
#include "passes/fuse/fuse_ops.h"
#include "passes/gradient/first_order_gradient.h"
#include "passes/nn/combine_parallel.h"
#include "passes/nn/convert_layout.h"
#include "passes/nn/fold_explicit_padding.h"
#include "passes/nn/split_args.h"
#include "passes/nn/to_mixed_precision.h"
#include "passes/scale/backward_fold_scale_axis.h"
#include "passes/scale/fold_scale_axis.h"
#include "passes/scale/forward_fold_scale_axis.h"
#include "passes/simplify/canonicalize_cast.h"
#include "passes/simplify/canonicalize_ops.h"
#include "passes/simplify/div_to_mul.h"
#include "passes/simplify/fast_math.h"
#include "passes/simplify/legalize.h"
#include "passes/simplify/remove_standalone_reshapes.h"
#include "passes/simplify/simplify_expr.h"
#include "passes/simplify/simplify_inference.h"

namespace headrace::passes {

using pass::Pass;
using pass::PassContext;

namespace {

template <IRModule (*pass)(const IRModule&)>
Pass plain(std::string name, int32_t opt_level, std::string summary) {
  return {{std::move(name), opt_level, {}, std::move(summary)},
          [](const IRModule& m, const PassContext&) { return pass(m); }};
}

template <IRModule (*pass)(const IRModule&, int64_t)>
Pass combining(const std::string& name, std::string summary) {
  return {{name, 4, {}, std::move(summary)},
          [name](const IRModule& m, const PassContext& c) { return pass(m, min_num_branches(c, name)); }};
}

}  // namespace

// Any of them may be left out, so none requires another; the order is what makes each find what it looks for:
// DynamicToStatic leaves constants to fold, SimplifyExpr joins the additions that folded scales bring together.
std::vector<Pass> canonical() {
  return {
      plain<simplify_inference>("SimplifyInference", 0, "batch norm and dropout become arithmetic"),
      plain<dynamic_to_static>("DynamicToStatic", 0, "known shape arithmetic becomes constants and attributes"),
      {{"FoldConstant", 2, {}, "what depends on constants alone becomes a constant"},
       [](const IRModule& m, const PassContext& c) { return fold_constant(m, c); }},
      {{"FoldScaleAxis", 3, {}, "multiplications around a convolution move into its weights"},
       [](const IRModule& m, const PassContext& c) { return fold_scale_axis(m, c); }},
      plain<simplify_expr>("SimplifyExpr", 1, "algebraic laws: x + 0, pairs of transposes, reshapes, casts ..."),
      plain<eliminate_common_subexpr>("EliminateCommonSubexpr", 2, "equal calls become one"),
      plain<dead_code_elimination>("DeadCodeElimination", 1, "unused lets and unreachable functions are dropped"),
  };
}

std::vector<Pass> native() {
  return {
      plain<bound_outputs>("BoundOutputs", 0, "results of a size that the data tells become buffers and extents"),
      {{"FuseOps", 0, {}, "groups of op calls become functions that are compiled as one kernel"},
       [](const IRModule& m, const PassContext& c) { return fuse_ops(m, fuse_options(c)); }},
  };
}

std::vector<Pass> by_name() {
  return {
      plain<to_a_normal_form>("ToANormalForm", 1,
                              "every operation is bound by a let, in the scope that holds its uses"),
      plain<to_basic_block_normal_form>("ToBasicBlockNormalForm", 1, "what several blocks use is bound by a let"),
      plain<remove_unused_functions>("RemoveUnusedFunctions", 1, "functions that no entry reaches are dropped"),
      plain<canonicalize_ops>("CanonicalizeOps", 3, "ops that are others in disguise: bias_add becomes add"),
      plain<div_to_mul>("DivToMul", 0, "a division by a constant becomes a multiplication"),
      plain<defuse_ops>("DefuseOps", 3, "what FuseOps put into functions comes out of them"),
      plain<inline_functions>("Inline", 1, "calls of functions marked Inline become their bodies"),
      plain<lambda_lift>("LambdaLift", 1, "functions inside functions become functions of the module"),
      {{"EtaExpand", 1, {}, "constructors and global functions that are values become functions that call them"},
       [](const IRModule& m, const PassContext& c) { return eta_expand(m, eta_options(c)); }},
      plain<remove_standalone_reshapes>("RemoveStandaloneReshapes", 0,
                                        "groups that only reshape are joined or dropped"),
      combining<combine_parallel_conv2d>("CombineParallelConv2D", "convolutions of the same data become one"),
      combining<combine_parallel_dense>("CombineParallelDense", "dense products of the same data become one"),
      combining<combine_parallel_batch_matmul>("CombineParallelBatchMatmul",
                                               "batched products of the same data become one"),
      plain<fold_explicit_padding>("FoldExplicitPadding", 0, "nn.pad becomes padding of the convolution or pool"),
      plain<canonicalize_cast>("CanonicalizeCast", 3, "elementwise readers of a widening cast get one each"),
      {{"SplitArgs", 1, {}, "concatenations of more tensors than a kernel takes are split"},
       [](const IRModule& m, const PassContext& c) { return split_args(m, max_function_args(c)); }},
      {{"BackwardFoldScaleAxis", 3, {}, "multiplications after a convolution move into its weights"},
       [](const IRModule& m, const PassContext& c) { return backward_fold_scale_axis(m, c); }},
      {{"ForwardFoldScaleAxis", 3, {}, "multiplications before a convolution move into its weights"},
       [](const IRModule& m, const PassContext& c) { return forward_fold_scale_axis(m, c); }},
      {{"ConvertLayout", 3, {}, "convolutions and pools run in the layouts that are asked for"},
       [](const IRModule& m, const PassContext& c) { return convert_layout(m, desired_layouts(c)); }},
      {{"ToMixedPrecision", 0, {}, "products, and what follows them, compute in float16 or bfloat16"},
       [](const IRModule& m, const PassContext& c) { return to_mixed_precision(m, mixed_precision_type(c)); }},
      plain<first_order_gradient>("FirstOrderGradient", 0, "functions give the gradients by their parameters too"),
      {{"Legalize", 1, {}, "calls become what the legalisations of their ops make of them"},
       [](const IRModule& m, const PassContext& c) { return legalize(m, legalize_attr(c)); }},
      plain<fast_math>("FastMath", 4, "exp, tanh, erf and softmax become their fast forms"),
      plain<annotate_spans>("AnnotateSpans", 0, "spans become places in the program's own text"),
      plain<partial_evaluate>("PartialEvaluate", 1, "what is known is computed, the rest left in administrative form"),
      plain<defunctionalization>("Defunctionalization", 1, "functions that are values become data that is called"),
      {{"PlanDevices", 0, {}, "every value gets a device, and what is needed on another is copied"},
       [](const IRModule& m, const PassContext& c) { return plan_devices(m, device_options(c)); }},
      plain<to_graph_normal_form>("ToGraphNormalForm", 1, "lets are dropped where order does not matter"),
  };
}

}  // namespace headrace::passes
