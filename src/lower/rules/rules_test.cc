// The ops of a small CNN, and elementwise families.
#include <gtest/gtest.h>

#include "lower/compute_rule.h"
#include "lower/rules/tests/rule_cases.h"
#include "lower/rules/tests/window_choice.h"
#include "ops/image/image.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/op_facts.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

// Attributes are given by name; the others have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace headrace::lower {
namespace {

using Args = std::vector<Expr>;

TEST(ConvRules, Conv2D) {
  RuleCases cases;
  auto conv = [&](const char* name, Shape data, Shape weight, const ConvChoice& attrs, DataType dtype = kF32,
                  double tolerance = 5e-6) {
    cases.add(
        name, {{data, dtype}, {weight, dtype}}, [=](const Args& a) { return ops::conv2d(a[0], a[1], attrs); },
        tolerance);
  };
  conv("3x3 padded", {1, 3, 13, 13}, {10, 3, 3, 3}, {.padding = {1, 1}});
  conv("1x1", {2, 17, 7, 7}, {9, 17, 1, 1}, {});
  conv("1x1 strided", {1, 5, 9, 14}, {6, 5, 1, 1}, {.strides = {2, 2}});
  conv("3x3 strided", {1, 4, 15, 17}, {7, 4, 3, 3}, {.strides = {2, 2}, .padding = {1, 1}});
  conv("7x7 stem", {1, 3, 31, 33}, {8, 3, 7, 7}, {.strides = {2, 2}, .padding = {3, 3}});
  conv("asymmetric", {1, 2, 9, 11}, {3, 2, 3, 2}, {.strides = {2, 1}, .padding = {0, 1, 2, 0}});
  conv("dilated", {1, 2, 16, 16}, {3, 2, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}});
  conv("dilated strided", {1, 2, 17, 19}, {3, 2, 3, 3}, {.strides = {2, 3}, .padding = {3, 1}, .dilation = {3, 2}});
  conv("grouped", {1, 6, 8, 8}, {8, 3, 3, 3}, {.padding = {1, 1}, .groups = 2});
  conv("depthwise", {1, 7, 10, 9}, {7, 1, 3, 3}, {.padding = {1, 1}, .groups = 7});
  conv("depthwise x2", {1, 4, 10, 9}, {8, 1, 3, 3}, {.strides = {2, 2}, .padding = {1, 1}, .groups = 4});
  conv("1x7", {1, 3, 5, 17}, {4, 3, 1, 7}, {.padding = {0, 3}});
  conv("one pixel", {1, 3, 3, 3}, {4, 3, 3, 3}, {});
  conv("NHWC", {1, 9, 9, 3}, {3, 3, 3, 10}, {.padding = {1, 1}, .data_layout = "NHWC", .kernel_layout = "HWIO"});
  conv("NHWC strided", {1, 9, 9, 3}, {10, 3, 3, 3},
       {.strides = {2, 2}, .padding = {1, 1}, .data_layout = "NHWC", .out_layout = "NCHW"});
  conv("float64", {1, 3, 6, 6}, {2, 3, 3, 3}, {.padding = {1, 1}}, kF64, 1e-12);
  conv("float16", {1, 3, 6, 6}, {2, 3, 3, 3}, {.padding = {1, 1}}, kF16, 1e-3);
  conv("bfloat16", {1, 3, 6, 6}, {2, 3, 1, 1}, {}, kBF16, 8e-3);
  conv("int32", {1, 3, 6, 6}, {2, 3, 3, 3}, {.padding = {1, 1}}, kI32);
  conv("int8 to int32", {1, 3, 6, 6}, {2, 3, 3, 3}, {.padding = {1, 1}, .out_dtype = kI32}, kI8);
  cases.check();
}

TEST(MatmulRules, Products) {
  RuleCases cases;
  auto dense = [&](const char* name, Shape data, Shape weight, DataType dtype = kF32, double tolerance = 1e-5) {
    cases.add(name, {{data, dtype}, {weight, dtype}}, [](const Args& a) { return ops::dense(a[0], a[1]); }, tolerance);
  };
  dense("dense 1", {1, 784}, {37, 784});
  dense("dense", {13, 65}, {34, 65});
  dense("dense vector", {40}, {7, 40});
  dense("dense batches", {2, 3, 5, 17}, {6, 17});
  dense("dense one", {1, 1}, {1, 1});
  dense("dense int8", {3, 9}, {4, 9}, kI8);
  dense("dense f16", {3, 40}, {4, 40}, kF16, 2e-3);
  dense("dense f64", {3, 40}, {4, 40}, kF64, 1e-12);
  dense("dense no sum", {3, 0}, {4, 0});
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      cases.add(
          fmt::format("matmul {} {}", ta, tb),
          {{ta ? Shape{19, 9} : Shape{9, 19}}, {tb ? Shape{35, 19} : Shape{19, 35}}},
          [=](const Args& a) { return ops::matmul(a[0], a[1], {.transpose_a = ta, .transpose_b = tb}); }, 1e-5);
      cases.add(
          fmt::format("batch_matmul {} {}", ta, tb),
          {{ta ? Shape{3, 19, 9} : Shape{3, 9, 19}}, {tb ? Shape{1, 35, 19} : Shape{1, 19, 35}}},
          [=](const Args& a) { return ops::batch_matmul(a[0], a[1], {.transpose_a = ta, .transpose_b = tb}); }, 1e-5);
    }
  }
  cases.check();
}

TEST(PoolRules, Windows) {
  RuleCases cases;
  auto max = [&](const char* name, Shape data, size_t spatial, const PoolChoice& attrs, DataType dtype = kF32) {
    cases.add(
        name, {{data, dtype, -3, 3, dtype.is_float()}},
        [=](const Args& a) { return ops::max_pool(a[0], attrs.over(spatial)); }, 0);
  };
  auto avg = [&](const char* name, Shape data, size_t spatial, const PoolChoice& attrs, DataType dtype = kF32,
                 double tolerance = 2e-6) {
    cases.add(
        name, {{data, dtype, -30, 30}}, [=](const Args& a) { return ops::avg_pool(a[0], attrs.over(spatial)); },
        tolerance);
  };
  max("max 2x2", {1, 3, 8, 10}, 2, {.pool_size = {2, 2}, .strides = {2, 2}});
  max("max 3x3 padded", {1, 3, 13, 15}, 2, {.pool_size = {3, 3}, .strides = {2, 2}, .padding = {1, 1}});
  max("max ceil", {1, 2, 10, 11}, 2, {.pool_size = {3, 3}, .strides = {2, 2}, .ceil_mode = true});
  max("max dilated", {1, 2, 10, 11}, 2, {.pool_size = {2, 3}, .dilation = {2, 3}, .padding = {1, 0, 0, 2}});
  max("max 1d", {2, 3, 17}, 1, {.pool_size = {3}, .strides = {2}});
  max("max 3d", {1, 2, 5, 6, 7}, 3, {.pool_size = {2, 2, 2}, .strides = {2, 2, 2}, .padding = {1, 0, 0, 0, 1, 1}});
  max("max NHWC", {1, 8, 9, 5}, 2, {.pool_size = {2, 2}, .strides = {2, 2}, .layout = "NHWC"});
  max("max int8", {1, 3, 8, 8}, 2, {.pool_size = {3, 3}, .padding = {1, 1}}, kI8);
  max("max uint8", {1, 3, 8, 8}, 2, {.pool_size = {3, 3}, .padding = {1, 1}}, kU8);
  max("max f16", {1, 3, 8, 8}, 2, {.pool_size = {3, 3}, .padding = {1, 1}}, kF16);
  avg("avg 2x2", {1, 3, 8, 10}, 2, {.pool_size = {2, 2}, .strides = {2, 2}});
  avg("avg padded", {1, 3, 9, 9}, 2, {.pool_size = {3, 3}, .strides = {2, 2}, .padding = {1, 1}});
  avg("avg counts", {1, 3, 9, 9}, 2,
      {.pool_size = {3, 3}, .strides = {2, 2}, .padding = {1, 1}, .count_include_pad = true});
  avg("avg ceil", {1, 2, 10, 11}, 2, {.pool_size = {3, 3}, .strides = {2, 2}, .ceil_mode = true});
  avg("avg ceil counts", {1, 2, 10, 11}, 2,
      {.pool_size = {3, 3}, .strides = {2, 2}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = true});
  avg("avg dilated", {1, 2, 10, 11}, 2, {.pool_size = {3, 2}, .dilation = {2, 3}, .padding = {2, 1}});
  avg("avg far padding", {1, 1, 3, 3}, 2, {.pool_size = {1, 1}, .strides = {1, 1}, .padding = {2, 2}});
  avg("avg int32", {1, 2, 9, 9}, 2, {.pool_size = {3, 3}, .padding = {1, 1}}, kI32);
  avg("avg uint8", {1, 2, 9, 9}, 2, {.pool_size = {2, 2}}, kU8);
  avg("avg f16", {1, 2, 9, 9}, 2, {.pool_size = {2, 2}}, kF16, 2e-3);
  avg("avg 1d", {1, 2, 9}, 1, {.pool_size = {4}});
  avg("avg 3d", {1, 2, 4, 5, 6}, 3, {.pool_size = {2}, .padding = {1}});
  for (const Shape& shape : {Shape{1, 5, 7, 7}, Shape{2, 3, 1, 1}, Shape{1, 2, 40, 33}}) {
    cases.add(fmt::format("global avg {}", shape[3]), {{shape}},
              [](const Args& a) { return ops::global_avg_pool2d(a[0]); });
    cases.add(
        fmt::format("global max {}", shape[3]), {{shape}}, [](const Args& a) { return ops::global_max_pool2d(a[0]); },
        0);
  }
  cases.add("global avg NHWC", {{{1, 5, 6, 9}}}, [](const Args& a) { return ops::global_avg_pool2d(a[0], "NHWC"); });
  cases.check();
}

TEST(NormalizationRules, EveryAxis) {
  RuleCases cases;
  for (const int64_t axis : {0, 1, 2, -1}) {
    cases.add(fmt::format("softmax {}", axis), {{{5, 7, 33}, kF32, -5, 5}},
              [=](const Args& a) { return ops::softmax(a[0], axis); });
    cases.add(fmt::format("log_softmax {}", axis), {{{5, 7, 33}, kF32, -5, 5}},
              [=](const Args& a) { return ops::log_softmax(a[0], axis); });
    const int64_t n = Shape{5, 7, 33, 33}[static_cast<size_t>(axis < 0 ? 3 : axis)];
    cases.add(
        fmt::format("layer_norm {}", axis), {{{5, 7, 33}}, {{n}}, {{n}}},
        [=](const Args& a) { return ops::layer_norm(a[0], a[1], a[2], {.axis = axis}); }, 5e-6);
    cases.add(fmt::format("lrn {}", axis), {{{5, 7, 33}}},
              [=](const Args& a) { return ops::lrn(a[0], {.size = axis == 2 ? 4 : 5, .axis = axis, .alpha = 0.1}); });
  }
  cases.add("softmax digits", {{{1, 10}}}, [](const Args& a) { return ops::softmax(a[0]); });
  cases.add("softmax one", {{{3, 1}}}, [](const Args& a) { return ops::softmax(a[0]); });
  cases.add("softmax vector", {{{1000}, kF32, -9, 9}}, [](const Args& a) { return ops::softmax(a[0]); });
  cases.add("softmax specials", {{{4, 9}, kF32, -9, 9, true}}, [](const Args& a) { return ops::softmax(a[0]); });
  cases.add("softmax f16", {{{4, 19}, kF16}}, [](const Args& a) { return ops::softmax(a[0]); }, 1e-3);
  cases.add("softmax f64", {{{4, 19}, kF64}}, [](const Args& a) { return ops::softmax(a[0]); }, 1e-12);
  cases.add("layer_norm plain", {{{3, 16}}, {{16}}, {{16}}}, [](const Args& a) {
    return ops::layer_norm(a[0], a[1], a[2], {.epsilon = 0.01, .center = false, .scale = false});
  });
  cases.add(
      "batch_norm", {{{2, 5, 3, 9}}, {{5}}, {{5}}, {{5}}, {{5}, kF32, 0.5, 2}},
      [](const Args& a) { return ops::batch_norm(a[0], a[1], a[2], a[3], a[4]); }, 5e-6);
  cases.add("lrn wide", {{{1, 3, 4}}}, [](const Args& a) { return ops::lrn(a[0], {.size = 100}); });
  cases.check();
}

TEST(ShapeRules, Moves) {
  RuleCases cases;
  auto reshape = [&](Shape from, Shape to, DataType dtype = kF32) {
    cases.add(
        fmt::format("reshape {} {}", fmt::join(from, "x"), fmt::join(to, "x")), {{from, dtype}},
        [=](const Args& a) { return ops::reshape(a[0], to); }, 0);
  };
  reshape({2, 3, 4}, {6, 4});
  reshape({2, 3, 4}, {4, 6});
  reshape({6, 35}, {2, 3, 5, 7});
  reshape({1, 12, 1}, {3, 1, 4});
  reshape({}, {1, 1});
  reshape({1}, Shape{});
  reshape({0, 4}, {0, 2, 2});
  reshape({7, 5}, {35}, kI8);
  reshape({35}, {5, 7}, kBool);
  cases.add("batch_flatten", {{{2, 3, 4, 5}}}, [](const Args& a) { return ops::batch_flatten(a[0]); }, 0);
  cases.add("squeeze", {{{1, 3, 1, 5}}}, [](const Args& a) { return ops::squeeze(a[0]); }, 0);
  cases.add("expand_dims", {{{3, 5}}}, [](const Args& a) { return ops::expand_dims(a[0], 1, 2); }, 0);
  for (const Shape& axes : {Shape{}, Shape{0, 2, 1, 3}, Shape{0, 2, 3, 1}, Shape{3, 0, 1, 2}}) {
    cases.add(
        fmt::format("transpose {}", fmt::join(axes, "")), {{{2, 3, 17, 5}}},
        [=](const Args& a) { return ops::transpose(a[0], axes); }, 0);
  }
  for (const int64_t axis : {0, 1, -1}) {
    cases.add(
        fmt::format("concatenate {}", axis),
        {{{axis == 0 ? 2 : 3, axis == 1 ? 4 : 5, axis == -1 ? 20 : 17}}, {{3, 5, 17}}, {{3, 5, 17}}},
        [=](const Args& a) { return ops::concatenate({a[0], a[1], a[2]}, axis); }, 0);
    cases.add(
        fmt::format("stack {}", axis), {{{3, 17}}, {{3, 17}}},
        [=](const Args& a) { return ops::stack({a[0], a[1]}, axis); }, 0);
    cases.add(
        fmt::format("split {}", axis), {{{6, 6, 6}}}, [=](const Args& a) { return ops::split(a[0], 3, axis); }, 0);
    cases.add(
        fmt::format("split at {}", axis), {{{6, 6, 6}}},
        [=](const Args& a) { return ops::split(a[0], Shape{1, 1, 5}, axis); }, 0);
    cases.add(
        fmt::format("reverse {}", axis), {{{3, 4, 5}}}, [=](const Args& a) { return ops::reverse(a[0], axis); }, 0);
    cases.add(
        fmt::format("repeat {}", axis), {{{3, 4, 5}}}, [=](const Args& a) { return ops::repeat(a[0], 3, axis); }, 0);
  }
  cases.add("broadcast_to", {{{3, 1, 5}}}, [](const Args& a) { return ops::broadcast_to(a[0], {2, 3, 4, 5}); }, 0);
  cases.add("broadcast_to scalar", {{Shape{}}}, [](const Args& a) { return ops::broadcast_to(a[0], {3, 20}); }, 0);
  cases.add("tile", {{{3, 5}}}, [](const Args& a) { return ops::tile(a[0], {2, 1, 3}); }, 0);
  cases.add("reshape_like", {{{3, 4}}, {{2, 6}}}, [](const Args& a) { return ops::reshape_like(a[0], a[1]); }, 0);
  cases.check();
}

TEST(Rules, WhichOpsHaveNone) {
  register_all_rules();
  for (const std::string& name : ops_without_rule()) {
    // The ops of destination passing come after lowering: nothing is computed of them. The others have a size that only
    // the data tells, are a backend's alone, or become plain ops before (QnnCanonicalize).
    const bool has_no_size = name == "argwhere" || name == "sparse_fill_empty_rows";
    if (name == "extern.onnx" || get_op(name)->find(ops::kPlainForm) != nullptr) continue;
    EXPECT_TRUE(name == "call_dps" || name.starts_with("memory.") || has_no_size) << name;
  }
}

}  // namespace
}  // namespace headrace::lower
