// Slices, takes, pads, resampling and creation against the interpreter.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "kit/native_kernels.h"
#include "lower/rules/tests/rule_cases.h"
#include "lower/rules/tests/window_choice.h"
#include "ops/image/image.h"
#include "ops/nn/conv.h"
#include "ops/nn/pad.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/slice.h"

// Attributes are given by name; the others have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace headrace::lower {
namespace {

using Args = std::vector<Expr>;

TEST(PickRules, StridedSlice) {
  RuleCases cases;
  auto slice = [&](const char* name, Shape begin, Shape end, Shape strides, Shape axes = {}, const char* mode = "end") {
    cases.add(
        name, {{{6, 7, 20}}}, [=](const Args& a) { return ops::strided_slice(a[0], begin, end, strides, axes, mode); },
        0);
  };
  slice("plain", {1, 2, 3}, {5, 6, 19}, {});
  slice("steps", {0, 1, 1}, {6, 7, 20}, {2, 3, 4});
  slice("backwards", {-1, 6, 19}, {-100, 0, 2}, {-1, -2, -3});
  slice("negative", {-3, -4, -20}, {-1, -1, -1}, {1, 1, 1});
  slice("axes", {2}, {INT64_MAX}, {1}, {-1});
  slice("empty", {3, 0, 0}, {3, 7, 20}, {});
  slice("size", {1, 2, 3}, {2, -1, 5}, {}, {}, "size");
  slice("huge step", {5, 0, 0}, {6, 7, 20}, {INT64_MAX, 1, 1});
  cases.check();
}

TEST(PickRules, Takes) {
  RuleCases cases;
  for (const char* mode : {"clip", "wrap"}) {
    for (const DataType dtype : {kI64, kI32, kI8}) {
      cases.add(
          fmt::format("take {} {}", mode, dtype), {{{5, 17}}, {{2, 3}, dtype, -9, 9}},
          [=](const Args& a) { return ops::take(a[0], a[1], 0, mode); }, 0);
    }
    cases.add(
        fmt::format("take flat {}", mode), {{{5, 17}}, {{2, 3}, kI64, -99, 99}},
        [=](const Args& a) { return ops::take(a[0], a[1], std::nullopt, mode); }, 0);
    cases.add(
        fmt::format("take scalar {}", mode), {{{5, 17}}, {Shape{}, kI64, 0, 9}},
        [=](const Args& a) { return ops::take(a[0], a[1], 1, mode); }, 0);
    const Expr past_int64 =
        relay::make_constant(NDArray::from_vector({}, DataType::uint(64), std::vector<uint64_t>{~uint64_t{0}}));
    cases.add(
        fmt::format("take constant {}", mode), {{{5, 17}}},
        [=](const Args& a) { return ops::take(a[0], past_int64, 0, mode); }, 0);
    cases.add(
        fmt::format("take batch {}", mode), {{{3, 5, 17}}, {{3, 4}, kI64, -9, 9}},
        [=](const Args& a) { return ops::take(a[0], a[1], 1, mode, 1); }, 0);
  }
  cases.add(
      "take fast", {{{5, 17}}, {{20}, kI64, 0, 16}}, [](const Args& a) { return ops::take(a[0], a[1], 1, "fast"); }, 0);
  cases.add(
      "take fast scalar", {{{5, 17}}, {Shape{}, kI64, 0, 4}},
      [](const Args& a) { return ops::take(a[0], a[1], 0, "fast"); }, 0);
  cases.add(
      "gather", {{{5, 17}}, {{5, 9}, kI64, -17, 16}}, [](const Args& a) { return ops::gather(a[0], 1, a[1]); }, 0);
  cases.add(
      "gather_nd", {{{5, 7, 17}}, {{2, 4}, kI64, -5, 4}}, [](const Args& a) { return ops::gather_nd(a[0], a[1]); }, 0);
  cases.add(
      "gather_nd of one index", {{{5, 17}}, {{1}, kI64, 0, 4}},
      [](const Args& a) { return ops::gather_nd(a[0], a[1]); }, 0);
  cases.add(
      "gather_nd batch", {{{3, 7, 17}}, {{1, 3, 4}, kI32, -7, 6}},
      [](const Args& a) { return ops::gather_nd(a[0], a[1], 1); }, 0);
  cases.check();
}

TEST(PickRules, Pads) {
  RuleCases cases;
  for (const char* mode : {"constant", "edge", "reflect"}) {
    cases.add(
        fmt::format("pad {}", mode), {{{3, 4, 17}}, {Shape{}}},
        [=](const Args& a) { return ops::pad(a[0], {Shape{1, 2}, Shape{0, 3}, Shape{4, 5}}, a[1], mode); }, 0);
  }
  cases.add("pad int8", {{{3, 17}, kI8, -9, 9}, {Shape{}, kI8, 3, 7}},
            [](const Args& a) { return ops::pad(a[0], {Shape{1, 2}, Shape{4, 5}}, a[1]); });
  // The value is cast to the data's dtype.
  const auto pad_all = [](const Args& a) { return ops::pad(a[0], {Shape{1, 2}, Shape{4, 5}}, a[1]); };
  cases.add("pad by int32", {{{3, 17}}, {Shape{}, kI32, 3, 7}}, pad_all, 0);
  cases.add("pad int8 by float32", {{{3, 17}, kI8, -9, 9}, {Shape{}, kF32, -7, 7}}, pad_all);
  cases.add("pad int8 by large int32", {{{3, 17}, kI8, -9, 9}, {Shape{}, kI32, 300, 900}}, pad_all);
  cases.add("pad float16 by float64", {{{3, 17}, kF16}, {Shape{}, kF64}}, pad_all, 0);
  cases.add(
      "pad crops", {{{6, 17}}, {Shape{}}},
      [](const Args& a) { return ops::pad(a[0], {Shape{-1, 2}, Shape{4, -5}}, a[1]); }, 0);
  cases.add(
      "pad nothing", {{{3, 17}}, {Shape{}}},
      [](const Args& a) { return ops::pad(a[0], {Shape{0, 0}, Shape{0, 0}}, a[1]); }, 0);
  cases.add(
      "pad of nothing", {{{0, 3}}, {Shape{1}}},
      [](const Args& a) { return ops::pad(a[0], {Shape{1, 1}, Shape{0, 0}}, a[1]); }, 0);
  for (const char* mode : {"SYMMETRIC", "REFLECT"}) {
    cases.add(
        fmt::format("mirror {}", mode), {{{3, 17}}},
        [=](const Args& a) { return ops::mirror_pad(a[0], {Shape{2, 1}, Shape{4, 5}}, mode); }, 0);
  }
  cases.check();
}

TEST(PickRules, Resize) {
  RuleCases cases;
  for (const char* coordinates :
       {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"}) {
    for (const Shape& size : {Shape{14, 20}, Shape{3, 5}, Shape{1, 33}}) {
      const std::string name = fmt::format("{} {}", coordinates, fmt::join(size, "x"));
      for (const char* method : {"nearest_neighbor", "linear", "cubic"}) {
        cases.add(
            fmt::format("{} {}", method, name), {{{1, 2, 7, 10}}},
            [=](const Args& a) {
              return ops::resize2d(a[0], size, {.method = method, .coordinate_transformation_mode = coordinates});
            },
            2e-6);
      }
    }
  }
  for (const char* rounding : {"", "round", "round_prefer_floor", "floor", "ceil", "round_prefer_ceil"}) {
    cases.add(
        fmt::format("rounding {}", rounding), {{{1, 2, 8, 8}}},
        [=](const Args& a) {
          return ops::resize2d(a[0], Shape{4, 12}, {.method = "nearest_neighbor", .rounding_method = rounding});
        },
        0);
  }
  for (const DataType dtype : {kF64, kF16, kU8, kI32}) {
    cases.add(
        fmt::format("linear {}", dtype), {{{1, 2, 7, 10}, dtype, 0, 200}},
        [](const Args& a) { return ops::resize2d(a[0], Shape{9, 21}); }, dtype == kF16 ? 2e-3 : 1e-12);
  }
  cases.add("NHWC", {{{1, 7, 10, 3}}}, [](const Args& a) { return ops::resize2d(a[0], {14, 20}, {.layout = "NHWC"}); });
  cases.add(
      "cubic exclude", {{{1, 1, 7, 10}}},
      [](const Args& a) {
        return ops::resize2d(a[0], Shape{14, 20}, {.method = "cubic", .cubic_alpha = -0.75, .cubic_exclude = true});
      },
      3e-6);
  cases.add(
      "infinities", {{{1, 1, 5, 5}, kF32, -1, 1, true}}, [](const Args& a) { return ops::resize2d(a[0], Shape{5, 5}); },
      0);
  cases.check();
}

TEST(ConvRules, Transposed) {
  RuleCases cases;
  auto conv = [&](const char* name, Shape data, Shape weight, const ConvChoice& attrs, DataType dtype = kF32) {
    cases.add(
        name, {{data, dtype}, {weight, dtype}}, [=](const Args& a) { return ops::conv2d_transpose(a[0], a[1], attrs); },
        dtype == kF16 ? 2e-3 : 5e-6);
  };
  conv("plain", {1, 3, 5, 7}, {3, 4, 3, 3}, {});
  conv("2x2 stride 2", {1, 6, 9, 11}, {6, 5, 2, 2}, {.strides = {2, 2}});
  conv("3x3 stride 2", {1, 3, 6, 7}, {3, 2, 3, 3}, {.strides = {2, 2}, .output_padding = {1, 1}, .padding = {1, 1}});
  conv("stride past taps", {1, 3, 4, 4}, {3, 2, 2, 2}, {.strides = {3, 3}});
  conv("asymmetric", {1, 3, 6, 7}, {3, 2, 4, 3}, {.strides = {2, 1}, .padding = {1, 0, 2, 1}});
  conv("dilated", {1, 3, 6, 7}, {3, 2, 3, 3}, {.strides = {2, 2}, .dilation = {2, 3}});
  conv("grouped", {1, 6, 5, 5}, {6, 2, 3, 3}, {.strides = {2, 2}, .padding = {1, 1}, .groups = 3});
  conv("4x4 stride 2", {1, 3, 6, 7}, {3, 2, 4, 4}, {.strides = {2, 2}, .padding = {1, 1}});
  conv("far padding", {1, 2, 9, 9}, {2, 3, 3, 5}, {.strides = {2, 3}, .padding = {5, 4, 6, 7}});
  conv("NHWC", {1, 5, 6, 3}, {3, 4, 2, 2},
       {.strides = {2, 2}, .data_layout = "NHWC", .kernel_layout = "IOHW", .out_layout = "NCHW"});
  conv("int32", {1, 2, 5, 5}, {2, 2, 3, 3}, {.strides = {2, 2}}, kI32);
  conv("float16", {1, 2, 5, 5}, {2, 2, 3, 3}, {.strides = {2, 2}}, kF16);
  cases.check();
}

// An infinite element reaches the results that its taps lead to, and no others.
TEST(ConvRules, TransposedOfInfinities) {
  RuleCases cases;
  auto conv = [&](const char* name, Shape taps, const ConvChoice& attrs) {
    cases.add(
        name, {{{1, 2, 6, 7}, kF32, -2, 2, true}, {{2, 3, taps[0], taps[1]}}},
        [=](const Args& a) { return ops::conv2d_transpose(a[0], a[1], attrs); }, 5e-6);
  };
  conv("1x1 stride 2", {1, 1}, {.strides = {2, 2}});
  conv("3x3 stride 2", {3, 3}, {.strides = {2, 2}, .padding = {1, 1}});
  conv("3x5 stride 2 and 4", {3, 5}, {.strides = {2, 4}});
  conv("dilated", {2, 2}, {.strides = {2, 2}, .dilation = {2, 3}});
  cases.check();
}

TEST(CreationRules, All) {
  RuleCases cases;
  for (const DataType dtype : {kF32, kF16, kI8, kI64, kBool}) {
    cases.add(
        fmt::format("full {}", dtype), {{Shape{}, dtype, 0, dtype == kBool ? 1.0 : 9.0}},
        [=](const Args& a) { return ops::full(a[0], Shape{3, 19}, dtype); }, 0);
    cases.add(
        fmt::format("full_like {}", dtype), {{{3, 19}, dtype, 0, 1}, {Shape{}, dtype, 0, dtype == kBool ? 1.0 : 9.0}},
        [](const Args& a) { return ops::full_like(a[0], a[1]); }, 0);
    cases.add(fmt::format("zeros {}", dtype), {}, [=](const Args&) { return ops::zeros({3, 19}, dtype); }, 0);
    cases.add(fmt::format("ones {}", dtype), {}, [=](const Args&) { return ops::ones({3, 19}, dtype); }, 0);
  }
  cases.add("shape_of", {{{3, 19, 1}}}, [](const Args& a) { return ops::shape_of(a[0]); });
  cases.add("shape_of i64", {{{3, 19, 1}}}, [](const Args& a) { return ops::shape_of(a[0], DataType::int_(64)); });
  cases.add("shape_of scalar", {{Shape{}}}, [](const Args& a) { return ops::shape_of(a[0]); });
  cases.add("ndarray_size", {{{3, 19}}}, [](const Args& a) { return ops::ndarray_size(a[0], kI32); });
  cases.check();
}

}  // namespace
}  // namespace headrace::lower
