// The polynomials, compiled and run, against the C library in float64.
#include "tir_passes/lower_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kit/native_kernels.h"
#include "tir_passes/pipeline.h"

namespace headrace::tir_passes {
namespace {

constexpr int64_t kCount = 1 << 20;
constexpr DataType kFloat = DataType::float_(32);

struct Function {
  Intrinsic intrinsic;
  double (*exact)(double);
  double limit;  // ulp
};
const Function kFunctions[] = {{Intrinsic::exp, std::exp, 2.5},
                               {Intrinsic::log, std::log, 2.5},
                               {Intrinsic::tanh, std::tanh, 2.5},
                               {Intrinsic::erf, std::erf, 3}};

// y[i] = f(x[i]), by vectors of `lanes`.
tir::PrimFunc kernel(Intrinsic intrinsic, int64_t lanes) {
  Buffer x = make_buffer("x", kFloat, to_dims({kCount})), y = make_buffer("y", kFloat, to_dims({kCount}));
  PrimVar block = make_prim_var("block"), lane = make_prim_var("lane");
  const PrimExpr at = block * lanes + lane;
  tir::Stmt store = tir::make_store(y, make_intrinsic(intrinsic, kFloat, {make_load(x, {at})}), {at});
  store = tir::make_for(lane, make_int(0), make_int(lanes), tir::ForKind::vectorized, store);
  store = tir::make_for(block, make_int(0), make_int(kCount / lanes), tir::ForKind::serial, store);
  return tir::make_prim_func(fmt::format("{}{}", name_of(intrinsic), lanes), {x, y}, 1, store);
}

// Floats of every exponent and sign, evenly spread over all bit patterns, with NaN and infinities.
NDArray every_pattern() {
  NDArray x = NDArray::empty({kCount}, kFloat);
  for (int64_t i = 0; i < kCount; ++i) {
    const auto bits = static_cast<uint32_t>(i) * (0xffffffffu / static_cast<uint32_t>(kCount)) + 0x1234u;
    std::memcpy(x.data<float>() + i, &bits, 4);
  }
  const float specials[] = {0.0F,       -0.0F,  INFINITY, -INFINITY, std::nanf(""),
                            88.722839F, 88.73F, -103.9F,  -104.5F,   1.0F};
  std::memcpy(x.data<float>(), specials, sizeof(specials));
  return x;
}

// Floats where the functions do not saturate.
NDArray between(float low, float high) {
  NDArray x = NDArray::empty({kCount}, kFloat);
  for (int64_t i = 0; i < kCount; ++i) {
    x.data<float>()[i] = low + (high - low) * static_cast<float>(i) / static_cast<float>(kCount);
  }
  return x;
}

// The distance in units of the last place of the exact value's float.
double ulp_error(float got, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : INFINITY;
  const float magnitude = std::max(std::abs(nearest), 0x1p-126F);
  return std::abs(static_cast<double>(got) - exact) /
         (static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude));
}

TEST(LowerMath, IsNearTheExactValue) {
  for (const int64_t lanes : {1, 16}) {
    std::vector<tir::PrimFunc> functions;
    for (const Function& f : kFunctions) functions.push_back(run_pipeline(kernel(f.intrinsic, lanes)));
    const kit::NativeKernels kernels(functions);
    for (const NDArray& x : {every_pattern(), between(-9, 9), between(-104, 89), between(0.5F, 2)}) {
      for (size_t i = 0; i < std::size(kFunctions); ++i) {
        const NDArray y = kernels.run(i, {x}).at(0);
        double worst = 0;
        float where = 0;
        for (int64_t k = 0; k < kCount; ++k) {
          const float at = x.data<float>()[k];
          const double error = ulp_error(y.data<float>()[k], kFunctions[i].exact(static_cast<double>(at)));
          if (!(error <= worst)) worst = error, where = at;
        }
        EXPECT_LE(worst, kFunctions[i].limit)
            << name_of(kFunctions[i].intrinsic) << "(" << where << "), " << lanes << " lanes";
        RecordProperty(std::string(name_of(kFunctions[i].intrinsic)), std::to_string(worst));
      }
    }
  }
}

TEST(LowerMath, LeavesOtherDtypes) {
  Buffer x = make_buffer("x", DataType::float_(64), to_dims({1})), y = make_buffer("y", x->dtype, x->shape);
  const tir::PrimFunc function = tir::make_prim_func(
      "f", {x, y}, 1,
      tir::make_store(y, make_intrinsic(Intrinsic::exp, x->dtype, {make_load(x, {make_int(0)})}), {make_int(0)}));
  EXPECT_EQ(lower_math(function), function);
}

}  // namespace
}  // namespace headrace::tir_passes
