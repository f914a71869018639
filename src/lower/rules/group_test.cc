// Fused groups, as FuseOps makes them, against the interpreter; and what the rules refuse.
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "kit/native_kernels.h"
#include "lower/compute_rule.h"
#include "lower/loops/window_copies.h"
#include "lower/lower_function.h"
#include "lower/rules/tests/rule_cases.h"
#include "lower/rules/tests/window_choice.h"
#include "lower/stages/fuse_stages.h"
#include "ops/algorithm/sort.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "relay/infer/infer_type.h"
#include "tir_passes/pipeline.h"

// Attributes are given by name; the others have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace headrace::lower {
namespace {

using Args = std::vector<Expr>;

Expr conv_block(const Args& a) {
  return ops::relu(ops::bias_add(ops::conv2d(a[0], a[1], ConvChoice{.padding = {1, 1}}), a[2]));
}

TEST(Groups, GiveWhatTheirOpsGive) {
  RuleCases cases;
  const std::vector<In> conv{{{1, 5, 14, 14}}, {{9, 5, 3, 3}}, {{9}}};
  cases.add("conv bias relu", conv, conv_block, 5e-6);
  cases.add("conv of long rows", {{{1, 5, 20, 40}}, {{9, 5, 3, 3}}, {{9}}}, conv_block, 5e-6);
  cases.add(
      "conv residual", {{{1, 5, 14, 14}}, {{5, 5, 3, 3}}, {{5}}},
      [](const Args& a) {
        return ops::relu(ops::add(ops::bias_add(ops::conv2d(a[0], a[1], ConvChoice{.padding = {1, 1}}), a[2]), a[0]));
      },
      5e-6);
  cases.add(
      "conv hard-swish", conv,
      [](const Args& a) {
        const Expr y = ops::bias_add(ops::conv2d(a[0], a[1], ConvChoice{.padding = {1, 1}}), a[2]);
        const Expr gate = ops::clip(ops::add(y, relay::make_scalar(3)), 0, 6);
        return ops::multiply(y, ops::divide(gate, relay::make_scalar(6)));
      },
      5e-6);
  cases.add(
      "conv swish", conv,
      [](const Args& a) {
        const Expr y = ops::bias_add(ops::conv2d(a[0], a[1], ConvChoice{.padding = {1, 1}}), a[2]);
        return ops::multiply(y, ops::unary("sigmoid", y));
      },
      5e-6);
  cases.add(
      "dense gelu", {{{3, 40}}, {{21, 40}}, {{21}}},
      [](const Args& a) {
        const Expr y = ops::bias_add(ops::dense(a[0], a[1]), a[2], -1);
        const Expr gate = ops::unary("erf", ops::multiply(y, relay::make_scalar(0.70710678)));
        return ops::multiply(ops::multiply(y, ops::add(gate, relay::make_scalar(1))), relay::make_scalar(0.5));
      },
      1e-5);
  cases.add(
      "relu before conv", conv,
      [](const Args& a) { return ops::conv2d(ops::relu(a[0]), a[1], ConvChoice{.padding = {1, 1}}); }, 5e-6);
  cases.add("global pool flatten", {{{1, 13, 7, 7}}},
            [](const Args& a) { return ops::batch_flatten(ops::global_avg_pool2d(ops::relu(a[0]))); });
  cases.add("concat of relus", {{{1, 3, 9, 5}}, {{1, 4, 9, 5}}},
            [](const Args& a) { return ops::concatenate({ops::relu(a[0]), ops::unary("exp", a[1])}, 1); });
  cases.add(
      "relu of concat", {{{1, 3, 9, 5}}, {{1, 4, 9, 5}}},
      [](const Args& a) { return ops::relu(ops::concatenate({a[0], a[1]}, 1)); }, 0);
  cases.add(
      "channel shuffle", {{{1, 6, 9, 5}}},
      [](const Args& a) {
        return ops::reshape(ops::transpose(ops::reshape(a[0], {1, 2, 3, 9, 5}), {0, 2, 1, 3, 4}), {1, 6, 9, 5});
      },
      0);
  cases.add(
      "split and join", {{{1, 6, 9, 5}}},
      [](const Args& a) {
        const Expr parts = ops::split(a[0], 2, 1);
        return ops::add(relay::make_tuple_get_item(parts, 0), relay::make_tuple_get_item(parts, 1));
      },
      0);
  cases.add(
      "several results", {{{4, 19}}},
      [](const Args& a) {
        const Expr y = ops::unary("exp", a[0]);
        return relay::make_tuple({y, ops::add(y, a[0]), ops::reduce("sum", y, Shape{1})});
      },
      1e-5);
  cases.add("one result twice", {{{4, 19}}}, [](const Args& a) {
    const Expr y = ops::unary("exp", a[0]);
    return relay::make_tuple({y, y, a[0]});
  });
  cases.add(
      "mask dropped", {{{4, 19}}},
      [](const Args& a) { return ops::relu(relay::make_tuple_get_item(ops::dropout(a[0]), 0)); }, 0);
  cases.add(
      "instance normalisation", {{{2, 3, 8, 9}}},
      [](const Args& a) {
        const Expr mean = ops::reduce("mean", a[0], Shape{2, 3}, true), d = ops::subtract(a[0], mean);
        const Expr variance = ops::reduce("mean", ops::multiply(d, d), Shape{2, 3}, true);
        return ops::multiply(d, ops::unary("rsqrt", ops::add(variance, relay::make_scalar(1e-5))));
      },
      5e-6);
  cases.add("square by power", {{{4, 19}}},
            [](const Args& a) { return ops::binary("power", a[0], relay::make_scalar(2)); });
  cases.add(
      "long chain", {{{4, 1000}}},
      [](const Args& a) {
        Expr y = a[0];
        // Each link reads the one before twice: as a tree this would have 2^40 leaves.
        for (int i = 0; i < 40; ++i) y = ops::multiply(ops::unary("tanh", y), ops::add(y, relay::make_scalar(0.5)));
        return y;
      },
      1e-5);
  cases.add("threads", {{{1, 8, 40, 40}}, {{24, 8, 3, 3}}, {{24}}}, conv_block, 1e-5);
  cases.check();
}

relay::Function typed_group(const std::vector<In>& inputs, const RuleCases::Build& build) {
  register_all_rules();
  Array<relay::Var> params;
  Args args;
  for (const In& in : inputs) {
    params.push_back(relay::make_var("x", make_tensor_type(in.shape, in.dtype)));
    args.push_back(params.back());
  }
  const Expr function = relay::infer_type(relay::make_function(params, build(args)));
  return function.cast<relay::FunctionNode>();
}

// The stages of a group after fusion.
size_t count_stages(const std::vector<In>& inputs, const RuleCases::Build& build) {
  return fuse_stages(copy_windows(compute_of(typed_group(inputs, build)), {})).stages.size();
}

TEST(Groups, FuseIntoFewStages) {
  const std::vector<In> wide{{{1, 5, 20, 40}}, {{9, 5, 3, 3}}, {{9}}};
  EXPECT_EQ(count_stages(wide, conv_block), 2u) << "the padding, and all the rest";
  const std::vector<In> narrow{{{1, 5, 14, 14}}, {{9, 5, 3, 3}}, {{9}}};
  EXPECT_EQ(count_stages(narrow, conv_block), 3u) << "the padding, the sums of joined rows, what is taken out of them";
  EXPECT_EQ(count_stages({{{4, 19}}},
                         [](const Args& a) { return relay::make_tuple_get_item(ops::dropout(ops::relu(a[0])), 0); }),
            1u);
}

// Stages of a thousand: what each is read by is known, not looked for.
TEST(Groups, OfThousandsOfParts) {
  constexpr int64_t kParts = 3000;
  EXPECT_EQ(count_stages({{{kParts, 2}}}, [&](const Args& a) { return ops::split(a[0], kParts, 0); }), 3000u);
  const auto join = [&](const Args& a) { return ops::concatenate(Array<Expr>(Args(kParts, ops::relu(a[0]))), 0); };
  EXPECT_EQ(count_stages({{{1, 2}}}, join), 3001u) << "relu, read by all";
  const auto halves = [&](const Args& a) {
    const Expr parts = ops::split(a[0], kParts, 0);
    Args sums;
    for (int64_t i = 0; i + 1 < kParts; i += 2) {
      sums.push_back(ops::add(relay::make_tuple_get_item(parts, i), relay::make_tuple_get_item(parts, i + 1)));
    }
    return ops::concatenate(Array<Expr>(sums), 0);
  };
  EXPECT_EQ(count_stages({{{kParts, 2}}}, halves), 1500u) << "parts and sums are computed where they are joined";
}

std::string error_of(const std::vector<In>& inputs, const RuleCases::Build& build) {
  return kit::user_error_of([&] { lower_function(typed_group(inputs, build), "f", {}); });
}

TEST(Groups, RefusalsSayWhatToDo) {
  const std::string slice = error_of({{{4, 9}}, {{1}, kI64}, {{1}, kI64}, {{1}, kI64}},
                                     [](const Args& a) { return ops::strided_slice(a[0], a[1], a[2], a[3]); });
  EXPECT_NE(slice.find("native code needs it to be constant"), std::string::npos) << slice;
  const std::string take = error_of({{{0, 9}}, {{2}, kI64}}, [](const Args& a) { return ops::take(a[0], a[1], 0); });
  EXPECT_NE(take.find("selects from an axis that has no elements"), std::string::npos) << take;
}

TEST(Groups, ABufferThatNoMachineHoldsIsRefused) {
  const std::string error = error_of({{{1, 1, 1 << 20, 1 << 20}, kI8}, {{1, 1, 3, 3}, kI8}}, [](const Args& a) {
    return ops::conv2d(a[0], a[1], ConvChoice{.padding = {1, 1}, .out_dtype = kI32});
  });
  EXPECT_NE(error.find("nn.conv2d"), std::string::npos) << error;
  EXPECT_NE(error.find("would keep 4398 GB in 'windows', more than any machine has"), std::string::npos) << error;
}

TEST(Groups, IndexOutOfRangeStopsTheKernel) {
  register_all_rules();
  const auto data = relay::make_var("x", make_tensor_type(Shape{5, 17}, kF32));
  const auto indices = relay::make_var("i", make_tensor_type(Shape{2, 3}, kI64));
  const Expr calls[] = {ops::take(data, indices, 0, "fast"), ops::gather_nd(data, indices)};
  std::vector<tir::PrimFunc> functions;
  for (const Expr& call : calls) {
    const Expr function = relay::infer_type(relay::make_function({data, indices}, call));
    functions.push_back(tir_passes::run_pipeline(
        lower_function(function.cast<relay::FunctionNode>(), fmt::format("f{}", functions.size()), {})));
  }
  const kit::NativeKernels kernels(functions);
  const NDArray x = NDArray::zeros({5, 17}, kF32);
  const NDArray good = NDArray::from_vector<int64_t>({2, 3}, kI64, {0, 1, 2, 3, 4, 0});
  const NDArray bad = NDArray::from_vector<int64_t>({2, 3}, kI64, {0, 1, 5, 3, 4, 0});
  EXPECT_EQ(kernels.error_of(0, {x, good}), "");
  EXPECT_EQ(kernels.error_of(1, {x, good}), "");
  EXPECT_EQ(kernels.error_of(0, {x, bad}), "take: an index is out of range for an axis of 5");
  EXPECT_EQ(kernels.error_of(1, {x, bad}), "gather_nd: an index is out of range for an axis of 5");
}

TEST(Groups, IndicesAreCheckedWhereNothingIsPicked) {
  register_all_rules();
  const auto data = relay::make_var("x", make_tensor_type(Shape{5, 0}, kF32));
  const auto indices = relay::make_var("i", make_tensor_type(Shape{1, 2}, kI64));
  const Expr function = relay::infer_type(relay::make_function({data, indices}, ops::gather_nd(data, indices)));
  const kit::NativeKernels kernels(
      {tir_passes::run_pipeline(lower_function(function.cast<relay::FunctionNode>(), "f", {}))});
  const NDArray x = NDArray::zeros({5, 0}, kF32);
  EXPECT_EQ(kernels.error_of(0, {x, NDArray::from_vector<int64_t>({1, 2}, kI64, {-5, 4})}), "");
  EXPECT_EQ(kernels.error_of(0, {x, NDArray::from_vector<int64_t>({1, 2}, kI64, {0, 5})}),
            "gather_nd: an index is out of range for an axis of 5");
}

// Text may mark such a function Primitive; FuseOps makes none.
TEST(Groups, AnOpWithAKernelOfItsOwnTakesNoOtherIn) {
  register_all_rules();
  const auto x = relay::make_var("x", make_tensor_type(Shape{4}, kF32));
  const Expr function = relay::infer_type(relay::make_function({x}, ops::argsort(ops::relu(x))));
  const std::string error = kit::user_error_of([&] { lower_function(function.cast<relay::FunctionNode>(), "f", {}); });
  EXPECT_NE(error.find("argsort"), std::string::npos) << error;
  EXPECT_NE(error.find("a function marked Primitive computes an operand of it"), std::string::npos) << error;
}

TEST(Groups, SymbolicShapesAreRefused) {
  register_all_rules();
  const PrimVar n = make_prim_var("n");
  const auto x = relay::make_var("x", make_tensor_type(Array<PrimExpr>{n, make_int(4)}, kF32));
  const Expr function = relay::infer_type(relay::make_function({x}, ops::reshape(x, {-1})));
  try {
    compute_of(function.cast<relay::FunctionNode>());
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("fix the input shapes"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace headrace::lower
