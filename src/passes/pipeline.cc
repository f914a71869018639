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
#include "passes/gradient/lazy_gradient_init.h"
#include "passes/layout/alter_op_layout.h"
#include "passes/layout/assign_layout.h"
#include "passes/layout/convert_layout.h"
#include "passes/layout/pack_dense.h"
#include "passes/nn/combine_parallel.h"
#include "passes/nn/flatten_atrous_conv.h"
#include "passes/nn/fold_explicit_padding.h"
#include "passes/nn/qnn_canonicalize.h"
#include "passes/nn/split_args.h"
#include "passes/nn/split_recurrent.h"
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

using pass::config_key;
using pass::Pass;
using pass::PassContext;

namespace {

template <IRModule (*pass)(const IRModule&)>
Pass plain(std::string name, int32_t opt_level, std::string summary, std::vector<std::string> aliases = {}) {
  return {
      {.name = std::move(name), .opt_level = opt_level, .summary = std::move(summary), .aliases = std::move(aliases)},
      [](const IRModule& m, const PassContext&) { return pass(m); }};
}

template <typename F>
Pass with_context(std::string name, int32_t opt_level, std::string summary, std::vector<pass::ConfigKey> options,
                  F&& run) {
  return {
      {.name = std::move(name), .opt_level = opt_level, .summary = std::move(summary), .options = std::move(options)},
      std::forward<F>(run)};
}

// Marks a pass whose results may differ by rounding from those of the program before.
Pass rounding(Pass pass) {
  pass.info.rounds = true;
  return pass;
}

// Marks a pass after which Relay infers types: the functions that its own pass of this name gives have result types.
Pass typed_after(Pass pass) {
  pass.info.relay_typing = pass::RelayTyping::after;
  return pass;
}

// Marks a pass before and after which Relay infers types.
Pass typed_around(Pass pass) {
  pass.info.relay_typing = pass::RelayTyping::around;
  return pass;
}

Pass after(std::vector<std::string> others, Pass pass) {
  pass.info.runs_after = std::move(others);
  return pass;
}

pass::ConfigKey branches_key() {
  return config_key<int64_t>("min_num_branches", "how many siblings are worth it", "3");
}

template <IRModule (*pass)(const IRModule&, int64_t)>
Pass combining(const std::string& name, std::string summary) {
  return typed_around(
      with_context(name, 4, std::move(summary), {branches_key()},
                   [name](const IRModule& m, const PassContext& c) { return pass(m, min_num_branches(c, name)); }));
}

// Makes CombineParallelDense. Called by name it copies the data for each batch, as Relay does; builds do not.
Pass combining_dense(bool copies_data) {
  const std::string name = "CombineParallelDense";
  return typed_around(
      with_context(name, 4, "dense products of the same data become one",
                   {branches_key(), config_key<bool>("to_batch", "one nn.batch_matmul, else a wider nn.dense", "true"),
                    config_key<bool>("copy_data", "a copy of the data for each batch; in builds false", "true")},
                   [name, copies_data](const IRModule& m, const PassContext& c) {
                     return combine_parallel_dense(m, min_num_branches(c, name), dense_form(c, copies_data));
                   }));
}

Pass folding_constants() {
  return typed_after(with_context("FoldConstant", 2, "expressions of constants alone become their values", {},
                                  [](IRModule m, const PassContext& c) { return fold_constant(std::move(m), c); }));
}

Pass legalizing() {
  return typed_around(
      with_context("Legalize", 1, "calls become what the legalisations of their ops make of them",
                   {config_key<std::string>("legalize_map_attr_name", "the op attribute", kLegalizeAttr)},
                   [](const IRModule& m, const PassContext& c) { return legalize(m, legalize_attr(c)); }));
}

// Makes SimplifyInference. Called by name it turns every norm into arithmetic, as in Relay; in builds, norms by their
// data's own statistics go to the kernels that they have (simplify_inference.h).
Pass simplifying_inference(bool unpacks_norms) {
  return rounding(typed_after(with_context(
      "SimplifyInference", 0, "norms and dropout become arithmetic",
      {config_key<bool>("unpack_norms", "norms whose statistics are the data's own too; in builds false", "true")},
      [unpacks_norms](const IRModule& m, const PassContext& c) {
        const auto wish = c.option<bool>("relay.SimplifyInference.unpack_norms");
        return simplify_inference(m, wish.value_or(unpacks_norms));
      })));
}

bool folds_variables(const PassContext& context, bool otherwise) {
  return context.option<bool>("relay.FoldScaleAxis.fold_variables").value_or(otherwise);
}

Pass folding_scale_backward(bool with_variables) {
  return rounding(
      typed_around(with_context("BackwardFoldScaleAxis", 3, "multiplications after a convolution move into its weights",
                                {}, [with_variables](IRModule m, const PassContext& c) {
                                  return backward_fold_scale_axis(std::move(m), c, folds_variables(c, with_variables));
                                })));
}

// Comes after the backward pass, which needs no positive factors where both could move a scale.
Pass folding_scale_forward(bool with_variables) {
  return after({"BackwardFoldScaleAxis"},
               rounding(typed_around(
                   with_context("ForwardFoldScaleAxis", 3, "multiplications before a convolution move into its weights",
                                {}, [with_variables](const IRModule& m, const PassContext& c) {
                                  return forward_fold_scale_axis(m, c, folds_variables(c, with_variables));
                                }))));
}

// Makes FoldScaleAxis of steps. Called by name it multiplies weights that are variables, as in Relay; builds do not,
// since that is work at each run.
Pass folding_scale_axis(std::vector<Pass> steps) {
  Pass pass = rounding(
      with_context(kFoldScaleAxis, 0, "multiplications around a convolution move into its weights",
                   {config_key<bool>("fold_variables",
                                     "into weights, and of factors, that are not constants; in builds false", "true")},
                   [steps = std::move(steps)](IRModule m, const PassContext& c) {
                     return fold_scale_axis(std::move(m), c, steps);
                   }));
  pass.info.traceable = false;  // its steps are traced
  return pass;
}

// Makes SimplifyExpr. Called by name it takes Relay's laws where builds have better ones.
Pass simplifying_expressions(bool as_named) {
  Pass pass = rounding(typed_around(with_context(
      "SimplifyExpr", 0, "algebraic laws: x + 0, pairs of transposes, reshapes, casts ...",
      {config_key<bool>("as_in_relay", "Relay's laws where builds have better ones; in builds false", "true")},
      [as_named](const IRModule& m, const PassContext& c) {
        const auto wish = c.option<bool>("relay.SimplifyExpr.as_in_relay");
        return simplify_expr(m, c.opt_level, wish.value_or(as_named));
      })));
  pass.info.relay_level = 3;  // Relay's has no levels
  return pass;
}

Pass eliminating_common_subexpr() {
  return typed_around(with_context(
      "EliminateCommonSubexpr", 3, "equal calls become one",
      {config_key<PackedFunc>("fskip", "(call) -> bool: those that it says true of are left alone")},
      [](const IRModule& m, const PassContext& c) { return eliminate_common_subexpr(m, common_subexpr_skip(c)); }));
}

Pass eliminating_dead_code() {
  return typed_after(
      with_context("DeadCodeElimination", 1, "unused lets and unreachable functions are dropped",
                   {config_key<bool>("inline_once", "lets that are used once become their value", "false"),
                    config_key<bool>("ignore_impurity", "as if no value had an effect", "false")},
                   [](const IRModule& m, const PassContext& c) { return dead_code_elimination(m, dce_options(c)); }));
}

Pass removing_unused_functions() {
  return with_context(
      "RemoveUnusedFunctions", 1, "functions that no entry reaches are dropped",
      {config_key<Array<std::string>>("entry_functions", "the functions that stay, with all that they refer to",
                                      "main")},
      [](const IRModule& m, const PassContext& c) { return remove_unused_functions(m, entry_functions(c)); });
}

// Declares the passes that look for ops as earlier: they find none inside the groups that FuseOps makes.
Pass fusing() {
  return after(
      {"Legalize",
       "SimplifyInference",
       "DynamicToStatic",
       "CombineParallelConv2D",
       "CombineParallelDense",
       "CombineParallelBatchMatmul",
       "FoldScaleAxis",
       "BackwardFoldScaleAxis",
       "ForwardFoldScaleAxis",
       "SimplifyExpr",
       "FastMath",
       "CanonicalizeOps",
       "CanonicalizeCast",
       "DivToMul",
       "FlattenAtrousConv",
       "FoldExplicitPadding",
       "SplitArgs",
       "SplitRecurrent",
       "QnnCanonicalize",
       "AssignLayout",
       "PackDense",
       "ConvertLayout",
       "AlterOpLayout",
       "ToMixedPrecision",
       "FirstOrderGradient",
       "LazyGradientInit",
       "BoundOutputs"},
      typed_around(with_context(
          "FuseOps", 0, "groups of op calls become functions that are compiled as one kernel",
          {config_key<int64_t>("fuse_opt_level", "0: each op by itself; -1: as the context's level says", "-1"),
           config_key<int64_t>("max_depth", "op calls a group; 1: each op by itself", "256")},
          [](const IRModule& m, const PassContext& c) { return fuse_ops(m, fuse_options(c)); })));
}

Pass defusing() {
  Pass pass = typed_around(
      plain<defuse_ops>("DefuseOps", 3, "functions that FuseOps made dissolve into their calls", {"DeFuseOps"}));
  pass.info.undoes = {"FuseOps"};
  return pass;
}

Pass expanding() {
  return with_context(
      "EtaExpand", 1, "constructors and global functions that are values become functions that call them",
      {config_key<bool>("expand_constructor", "whether constructors become function literals", "true"),
       config_key<bool>("expand_global_var", "whether global functions become function literals", "false")},
      [](const IRModule& m, const PassContext& c) { return eta_expand(m, eta_options(c)); });
}

Pass splitting_recurrent(const cost::Machine& machine) {
  return rounding(
      with_context("SplitRecurrent", 0, "recurrent layers become one product of all inputs and the loop over the steps",
                   {}, [machine](const IRModule& m, const PassContext&) { return split_recurrent(m, machine); }));
}

Pass assigning_layout(const cost::Machine& machine) {
  return rounding(with_context(
      "AssignLayout", 3, "convolutions run in the layouts that cost the least",
      {config_key<int64_t>("block", "channels in a block: 8 or 16; 0: those of the machine's vectors", "0")},
      [machine](const IRModule& m, const PassContext& c) { return assign_layout(m, machine, layout_block(c)); }));
}

Pass packing_dense(const cost::Machine& machine) {
  return rounding(with_context("PackDense", 3, "products read constant matrices in parts of a vector's columns", {},
                               [machine](const IRModule& m, const PassContext&) { return pack_dense(m, machine); }));
}

Pass converting_layout() {
  return rounding(typed_around(with_context(
      "ConvertLayout", 3, "convolutions and pools run in the layouts that are asked for",
      {config_key<Map<std::string, Array<std::string>>>(
          "desired_layouts", "by op: layouts of data and, if it has one, of the kernel", "", &check_desired_layouts)},
      [](const IRModule& m, const PassContext& c) { return convert_layout(m, desired_layouts(c)); })));
}

Pass mixing_precision() {
  return rounding(typed_after(with_context(
      "ToMixedPrecision", 0, "products, and what follows them, compute in float16 or bfloat16",
      {config_key<std::string>("mixed_precision_type", "float16, bfloat16 or float64", "float16"),
       config_key<int64_t>("missing_op_mode", "ops of no list: 0 refuses them, 1 and 2 compute them in float32", "1"),
       config_key<bool>("keep_orig_output_dtype", "whether functions give what they gave", "false")},
      [](const IRModule& m, const PassContext& c) { return to_mixed_precision(m, mixed_precision_options(c)); })));
}

Pass partially_evaluating() {
  Pass pass = with_context("PartialEvaluate", 1, "known values are computed, the rest is left in administrative form",
                           {}, [](const IRModule& m, const PassContext& c) { return partial_evaluate(m, c); });
  pass.info.aliases = {"PartialEval"};
  return pass;
}

Pass planning_devices() {
  return with_context(
      "PlanDevices", 0, "every value gets a device, and what is needed on another is copied",
      {config_key<std::string>("default_device", "the device of expressions that no annotation determines", "cpu:0"),
       config_key<std::string>("host_device", "where conditions are decided", "cpu:0")},
      [](const IRModule& m, const PassContext& c) { return plan_devices(m, device_options(c)); });
}

}  // namespace

// Any pass may be left out, so none requires another; the order lets each find what it looks for, and the comment at
// each row gives the reason for its place. An order whose violation would lose results is declared
// (PassInfo::runs_after).
std::vector<Pass> canonical() {
  return {
      // First: graph programs have no call instruction, and the passes below do not look across calls.
      plain<inline_calls>("InlineCalls", 0, "calls of functions that are in no cycle become their bodies"),
      // After InlineCalls, which may bind arguments by lets. Before the passes that look for ops among their operands,
      // and before FuseOps, which joins no calls across lets.
      typed_after(plain<to_graph_normal_form>("ToGraphNormalForm", 1, "lets are dropped where order does not matter")),
      // Before any pass that rewrites ops, so that the functions of users see the ops as they were written; after the
      // two above, so that these functions see all operands.
      legalizing(),
      // After Legalize, whose functions may make norms. Before FoldConstant and FoldScaleAxis, which fold the
      // multiplications and additions that it makes of norms.
      simplifying_inference(false),
      // Before the passes that look for convolutions, which find one where there were three ops.
      typed_around(plain<flatten_atrous_conv>(
          "FlattenAtrousConv", 0,
          "a convolution between space_to_batch_nd and batch_to_space_nd becomes a dilated one")),
      // Before FoldConstant, because it leaves constants to fold, and before the passes that need static shapes.
      typed_after(
          plain<dynamic_to_static>("DynamicToStatic", 0, "known shape arithmetic becomes constants and attributes")),
      // Before FoldScaleAxis and SimplifyExpr, which look for factors and operands that are constants.
      folding_constants(),
      // Before SimplifyExpr, which joins the additions that become neighbours when a scale has gone.
      folding_scale_axis({folding_scale_backward(false), folding_scale_forward(false)}),
      // Before EliminateCommonSubexpr, because simplified calls are more often equal.
      simplifying_expressions(false),
      // After all passes that make or change calls.
      eliminating_common_subexpr(),
      // Last: drops the functions and lets that the passes above left without a use.
      eliminating_dead_code(),
  };
}

std::vector<Pass> native(const cost::Machine& machine) {
  return {
      // First: the passes below find the plain ops. Not canonical: another backend looks for the quantized ones.
      plain<qnn_canonicalize>("QnnCanonicalize", 0, "quantized ops become the plain ops that compute them"),
      // Early: it makes products of the same data that are joined, and constants that are folded, below.
      splitting_recurrent(machine),
      // These three passes are not canonical: another backend looks for the ops as the program has them.
      // Before AssignLayout, which decides on the layout of the wider convolution.
      combining<combine_parallel_conv2d>("CombineParallelConv2D", "convolutions of the same data become one"),
      // Before CombineParallelBatchMatmul, because it makes batched products, which that pass may join with others.
      combining_dense(false),
      // Before FoldConstant, like the two above, so that the joined weights become constants.
      combining<combine_parallel_batch_matmul>("CombineParallelBatchMatmul",
                                               "batched products of the same data become one"),
      // After the passes above, so that joined convolutions are seen as one.
      assigning_layout(machine),
      // After CombineParallelDense and SplitRecurrent, whose products it packs as well.
      packing_dense(machine),
      // After the passes above, which leave joined and packed weights that are constants.
      folding_constants(),
      // After SimplifyExpr of the canonical list, whose laws look for the plain forms, and before FuseOps.
      after(
          {"SimplifyExpr"},
          typed_around(plain<fast_math>(
              "FastMath", 4, "exp, tanh, erf and softmax get the names of their fast forms, which compute the same"))),
      // After the canonical passes, which may find the size, and before FuseOps, which hides ops in groups.
      plain<bound_outputs>("BoundOutputs", 0, "results of a data-dependent size become buffers and extents"),
      // Last: after it every op is inside a group, where no pass looks for it.
      fusing(),
  };
}

// These run where they are named, so the order of the rows has no meaning; after() declares the orders that count.
// Inside of FoldScaleAxis, FoldConstant comes last: the two steps before it multiply weights by constant factors.
std::vector<Pass> by_name() {
  return {
      simplifying_inference(true),
      combining_dense(true),
      simplifying_expressions(true),
      folding_scale_axis({folding_scale_backward(true), folding_scale_forward(true), folding_constants()}),
      plain<to_a_normal_form>("ToANormalForm", 1,
                              "every operation is bound by a let, in the scope that holds its uses"),
      plain<to_basic_block_normal_form>("ToBasicBlockNormalForm", 1,
                                        "expressions that several blocks use are bound by lets"),
      removing_unused_functions(),
      typed_around(
          plain<canonicalize_ops>("CanonicalizeOps", 3, "ops that are others in disguise: bias_add becomes add")),
      rounding(typed_after(plain<div_to_mul>("DivToMul", 0, "a division by a constant becomes a multiplication"))),
      defusing(),
      plain<inline_functions>("Inline", 1, "calls of functions marked Inline become their bodies"),
      plain<lambda_lift>("LambdaLift", 1, "functions inside functions become functions of the module"),
      expanding(),
      // After FuseOps, because it works on groups.
      after({"FuseOps"}, plain<remove_standalone_reshapes>("RemoveStandaloneReshapes", 0,
                                                           "groups that only reshape are joined or dropped")),
      typed_around(
          plain<fold_explicit_padding>("FoldExplicitPadding", 0, "nn.pad becomes padding of the convolution or pool")),
      typed_around(
          plain<canonicalize_cast>("CanonicalizeCast", 3, "elementwise readers of a widening cast get one each")),
      typed_after(
          with_context("SplitArgs", 1, "concatenations of more tensors than a kernel takes are split",
                       {config_key<int64_t>("max_function_args", "the most inputs of a call; 0: any number", "0")},
                       [](const IRModule& m, const PassContext& c) { return split_args(m, max_function_args(c)); })),
      folding_scale_backward(true),
      folding_scale_forward(true),
      converting_layout(),
      rounding(typed_around(plain<alter_op_layout>(
          "AlterOpLayout", 3, "calls become what users' functions make of them, in other layouts"))),
      mixing_precision(),
      plain<first_order_gradient>("FirstOrderGradient", 0, "functions give the gradients by their parameters too"),
      rounding(plain<lazy_gradient_init>("LazyGradientInit", 1,
                                         "sums and products with zeros and ones of gradients are not computed")),
      plain<annotate_spans>("AnnotateSpans", 0, "spans become places in the program's own text"),
      partially_evaluating(),
      plain<defunctionalization>("Defunctionalization", 1, "functions that are values become data that is called"),
      planning_devices(),
  };
}

}  // namespace headrace::passes
