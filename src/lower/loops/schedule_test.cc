// Schedules, compiled and run, against plain loops written here.
#include "lower/loops/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kit/float_buffer.h"
#include "kit/native_kernels.h"
#include "kit/random_array.h"
#include "lower/compute_rule.h"
#include "lower/stages/fuse_stages.h"
#include "tir_passes/pipeline.h"

namespace headrace::lower {
namespace {

using tir::Combiner;
using tir::Compute;

// Schedules, compiles, links, loads and runs `compute` on `inputs`; gives its only output.
NDArray run_native(const Compute& compute, const std::vector<NDArray>& inputs, const cost::Machine& machine) {
  const kit::NativeKernels kernels({tir_passes::run_pipeline(schedule(compute, "kernel", machine))});
  return kernels.run(0, inputs).at(0);
}

const cost::Machine kMachines[] = {{.vector_bits = 128, .vector_registers = 16, .has_fma = false},
                                   {.vector_bits = 256, .vector_registers = 16, .has_fma = true},
                                   {.vector_bits = 512, .vector_registers = 32, .has_fma = true},
                                   // two multiply-adds of the widest vectors a cycle
                                   {.vector_bits = 512, .vector_registers = 32, .has_fma = true, .fma_port_bits = 512}};

class EveryWidth : public testing::TestWithParam<cost::Machine> {};
INSTANTIATE_TEST_SUITE_P(Schedule, EveryWidth, testing::ValuesIn(kMachines), [](const auto& info) {
  return fmt::format("bits{}by{}", info.param.vector_bits, info.param.fma_port_bits);
});

TEST_P(EveryWidth, MapOfAnyWidth) {
  for (const int64_t width : {1, 2, 7, 16, 33, 20000}) {
    const Shape shape{3, width};
    Buffer x = kit::float_buffer("x", shape), y = kit::float_buffer("y", shape);
    Compute compute{{x}, {map_stage(y, [&](const Index& i) { return load(x, i) * load(x, i) + make_float(1); })}, {y}};
    const NDArray input = kit::random_array(shape, 1);
    const NDArray output = run_native(compute, {input}, GetParam());
    for (int64_t i = 0; i < output.num_elements(); ++i) {
      const float v = input.data<float>()[i];
      ASSERT_NEAR(output.data<float>()[i], v * v + 1.0f, 1e-6f) << "width " << width << " element " << i;
    }
  }
}

Compute matmul(Buffer a, Buffer b, Buffer c, bool b_is_transposed) {
  const PrimExpr k = a->shape[1];
  return {{a, b},
          {reduce_stage(c, Combiner::sum, {k},
                        [&](const Index& i, const Index& r) {
                          return load(a, {i[0], r[0]}) *
                                 (b_is_transposed ? load(b, {i[1], r[0]}) : load(b, {r[0], i[1]}));
                        })},
          {c}};
}

void check_matmul(int64_t m, int64_t n, int64_t k, bool transposed, const cost::Machine& machine) {
  Buffer a = kit::float_buffer("a", {m, k}), b = kit::float_buffer("b", transposed ? Shape{n, k} : Shape{k, n}),
         c = kit::float_buffer("c", {m, n});
  const NDArray x = kit::random_array({m, k}, 2), y = kit::random_array(*as_shape(b->shape), 3);
  const NDArray z = run_native(matmul(a, b, c, transposed), {x, y}, machine);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < k; ++r)
        sum += static_cast<double>(x.data<float>()[i * k + r]) *
               static_cast<double>(y.data<float>()[transposed ? j * k + r : r * n + j]);
      ASSERT_NEAR(z.data<float>()[i * n + j], sum, 1e-5 * static_cast<double>(k)) << m << "x" << n << "x" << k;
    }
  }
}

TEST_P(EveryWidth, MatmulOfAnyShape) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{9, 33, 17}, Shape{40, 65, 64}, Shape{41, 300, 600}}) {
    check_matmul(s[0], s[1], s[2], false, GetParam());
    check_matmul(s[0], s[1], s[2], true, GetParam());
  }
}

// y[o, w, l] = sum over c, t, k of x[c, w + t, k] * weight[o, c, t, k, l]: a convolution along one axis with channels
// in blocks of one vector, whose tiles have rows of pixels and planes of blocks, with rests of both.
TEST_P(EveryWidth, ConvolutionInBlocks) {
  constexpr int64_t kTaps = 3, kInBlocks = 2;
  const int64_t lanes = cost::lanes_of(GetParam(), DataType::float_(32));
  for (const auto& [blocks, width] : {std::pair<int64_t, int64_t>{1, 5}, {2, 14}, {3, 29}, {7, 7}, {5, 1}}) {
    SCOPED_TRACE(fmt::format("{} blocks of {} pixels", blocks, width));
    const Shape data{kInBlocks, width + kTaps - 1, lanes}, kernel{blocks, kInBlocks, kTaps, lanes, lanes},
        result{blocks, width, lanes};
    const Buffer x = kit::float_buffer("x", data), w = kit::float_buffer("w", kernel),
                 y = kit::float_buffer("y", result);
    const Compute compute{{x, w},
                          {reduce_stage(y, Combiner::sum, {make_int(kInBlocks), make_int(kTaps), make_int(lanes)},
                                        [&](const Index& i, const Index& r) {
                                          return load(x, {r[0], i[1] + r[1], r[2]}) *
                                                 load(w, {i[0], r[0], r[1], r[2], i[2]});
                                        })},
                          {y}};
    const NDArray a = kit::random_array(data, 8), b = kit::random_array(kernel, 9);
    const NDArray out = run_native(compute, {a, b}, GetParam());
    for (int64_t at = 0; at < out.num_elements(); ++at) {
      const int64_t o = at / (width * lanes), q = at / lanes % width, l = at % lanes;
      double sum = 0;
      for (int64_t r = 0; r < kInBlocks * kTaps * lanes; ++r) {
        const int64_t c = r / (kTaps * lanes), t = r / lanes % kTaps, k = r % lanes;
        sum += static_cast<double>(a.data<float>()[(c * data[1] + q + t) * lanes + k]) *
               static_cast<double>(b.data<float>()[((o * kInBlocks + c) * kTaps + t) * lanes * lanes + k * lanes + l]);
      }
      ASSERT_NEAR(out.data<float>()[at], sum, 1e-4) << "element " << at;
    }
  }
}

// A padded 3x3 convolution with a bias and relu behind it: three ops, two stages, one of them in the workspace.
TEST_P(EveryWidth, ConvolutionWithFusedEpilogue) {
  constexpr int64_t kIn = 3, kOut = 10, kSize = 13;
  Buffer x = kit::float_buffer("x", {kIn, kSize, kSize}), w = kit::float_buffer("w", {kOut, kIn, 3, 3}),
         bias = kit::float_buffer("bias", {kOut});
  Buffer padded = kit::float_buffer("padded", {kIn, kSize + 2, kSize + 2}),
         conv = kit::float_buffer("conv", {kOut, kSize, kSize});
  Buffer y = kit::float_buffer("y", {kOut, kSize, kSize});
  const PrimExpr size = make_int(kSize);
  auto inside = [&](const PrimExpr& at) {
    return make_binary(BinaryOp::logical_and, make_binary(BinaryOp::ge, at, make_int(1)),
                       make_binary(BinaryOp::le, at, size));
  };
  Compute compute;
  compute.inputs = {x, w, bias};
  compute.outputs = {y};
  compute.stages.push_back(map_stage(padded, [&](const Index& i) {
    return make_intrinsic(Intrinsic::if_then_else, DataType::float_(32),
                          {make_binary(BinaryOp::logical_and, inside(i[1]), inside(i[2])),
                           load(x, {i[0], i[1] - 1, i[2] - 1}), make_float(0)});
  }));
  compute.stages.push_back(
      reduce_stage(conv, Combiner::sum, {make_int(kIn), make_int(3), make_int(3)}, [&](const Index& i, const Index& r) {
        return load(padded, {r[0], i[1] + r[1], i[2] + r[2]}) * load(w, {i[0], r[0], r[1], r[2]});
      }));
  compute.stages.push_back(map_stage(y, [&](const Index& i) {
    return make_binary(BinaryOp::max, load(conv, i) + load(bias, {i[0]}), make_float(0));
  }));
  compute = fuse_stages(compute);
  ASSERT_EQ(compute.stages.size(), 2u) << "bias and relu belong to the convolution, the padding does not";

  const NDArray data = kit::random_array({kIn, kSize, kSize}, 4), weight = kit::random_array({kOut, kIn, 3, 3}, 5);
  const NDArray shift = kit::random_array({kOut}, 6);
  const NDArray out = run_native(compute, {data, weight, shift}, GetParam());
  for (int64_t o = 0; o < kOut; ++o) {
    for (int64_t p = 0; p < kSize; ++p) {
      for (int64_t q = 0; q < kSize; ++q) {
        double sum = 0;
        for (int64_t c = 0; c < kIn; ++c)
          for (int64_t u = 0; u < 3; ++u)
            for (int64_t v = 0; v < 3; ++v) {
              const int64_t h = p + u - 1, l = q + v - 1;
              if (h < 0 || l < 0 || h >= kSize || l >= kSize) continue;
              sum += static_cast<double>(data.data<float>()[(c * kSize + h) * kSize + l]) *
                     static_cast<double>(weight.data<float>()[((o * kIn + c) * 3 + u) * 3 + v]);
            }
        const double want = std::max(0.0, sum + static_cast<double>(shift.data<float>()[o]));
        ASSERT_NEAR(out.data<float>()[(o * kSize + p) * kSize + q], want, 1e-5);
      }
    }
  }
}

// max, exp, sum, divide: four stages, none of which may be lost.
TEST_P(EveryWidth, SoftmaxInStages) {
  const Shape shape{4, 37};
  Buffer x = kit::float_buffer("x", shape), top = kit::float_buffer("top", {4}), e = kit::float_buffer("e", shape),
         sum = kit::float_buffer("sum", {4});
  Buffer y = kit::float_buffer("y", shape);
  Compute compute;
  compute.inputs = {x};
  compute.outputs = {y};
  const PrimExpr width = make_int(37);
  compute.stages.push_back(
      reduce_stage(top, Combiner::max, {width}, [&](const Index& i, const Index& r) { return load(x, {i[0], r[0]}); }));
  compute.stages.push_back(map_stage(e, [&](const Index& i) {
    return make_intrinsic(Intrinsic::exp, DataType::float_(32), {load(x, i) - load(top, {i[0]})});
  }));
  compute.stages.push_back(
      reduce_stage(sum, Combiner::sum, {width}, [&](const Index& i, const Index& r) { return load(e, {i[0], r[0]}); }));
  compute.stages.push_back(
      map_stage(y, [&](const Index& i) { return make_binary(BinaryOp::div, load(e, i), load(sum, {i[0]})); }));
  const NDArray input = kit::random_array(shape, 7);
  const NDArray output = run_native(fuse_stages(compute), {input}, GetParam());
  for (int64_t row = 0; row < 4; ++row) {
    double total = 0;
    for (int64_t i = 0; i < 37; ++i) total += std::exp(static_cast<double>(input.data<float>()[row * 37 + i]));
    for (int64_t i = 0; i < 37; ++i) {
      const double want = std::exp(static_cast<double>(input.data<float>()[row * 37 + i])) / total;
      ASSERT_NEAR(output.data<float>()[row * 37 + i], want, 1e-6);
    }
  }
}

TEST(Schedule, EmptyOutputIsNoLoop) {
  Buffer x = kit::float_buffer("x", {0, 4}), y = kit::float_buffer("y", {0, 4});
  Compute compute{{x}, {map_stage(y, [&](const Index& i) { return load(x, i); })}, {y}};
  EXPECT_EQ(run_native(compute, {kit::random_array({0, 4}, 1)}, kMachines[1]).num_elements(), 0);
}

TEST(Schedule, SymbolicShapeIsRefused) {
  Buffer x = make_buffer("x", DataType::float_(32), {make_prim_var("n")}), y = make_buffer("y", x->dtype, x->shape);
  Compute compute{{x}, {map_stage(y, [&](const Index& i) { return load(x, i); })}, {y}};
  EXPECT_THROW(schedule(compute, "kernel", {}), InternalError);
}

}  // namespace
}  // namespace headrace::lower
