// The interpreter of tir: values worked out by hand, errors; passes and native code against it.
#include "interp/tir_interp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/interrupt.h"
#include "kit/dtypes.h"
#include "kit/errors.h"
#include "kit/native_kernels.h"
#include "kit/property.h"
#include "kit/tir_programs.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir_passes/pipeline.h"

namespace headrace::interp {
namespace {

using kit::kF32;
using kit::kI64;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<NDArray> run_text(const std::string& signature, const std::string& body, const std::vector<NDArray>& inputs,
                              const TirOptions& options = {}) {
  const std::string text = "#[tir_version = \"1\"]\nprim_func @f" + signature + " {\n" + body + "\n}\n";
  return run_prim_func(tir::parse_function(text, "t.tir"), inputs, options);
}

std::vector<double> numbers(const NDArray& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.num_elements(); ++i) result.push_back(element_as_double(array.tensor(), i));
  return result;
}

NDArray floats(const std::vector<float>& data) {
  return NDArray::from_vector({static_cast<int64_t>(data.size())}, kF32, data);
}

// The elements of y[4], of `dtype`, that `body` leaves, with x = {1, 2, 3, 4}.
std::vector<double> four(const std::string& body, const std::string& dtype = "float32") {
  return numbers(
      run_text("(x: Buffer[(4), float32]) -> (y: Buffer[(4), " + dtype + "])", body, {floats({1, 2, 3, 4})})[0]);
}
double one(const std::string& value, const std::string& dtype = "float32") {
  return four("for i in serial(4) { y[i] = " + value + "; }", dtype)[0];
}

TEST(TirInterp, StatementsRunInOrder) {
  EXPECT_THAT(four("for i in parallel(4) { y[i] = x[3 - i] * 2f; }"), ElementsAre(8, 6, 4, 2));
  EXPECT_THAT(four("y[ramp(0, 1, 4)] = x[ramp(0, 1, 4)] + broadcast(x[1], 4);"), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(four("for i in serial(begin=1, extent=2) { y[i] = 1f; } y[0] = 7f; y[3] = 8f;"), ElementsAre(7, 1, 1, 8));
  EXPECT_THAT(
      four("for i in unrolled(4) { if (i < 2) { y[i] = 0f; } else if (i == 2) { y[i] = 5f; } else { y[i] = 6f; } }"),
      ElementsAre(0, 0, 5, 6));
  EXPECT_THAT(four("for i in serial(4) { let v: float32 = x[i] + 1f; let w: float32 = v * v; y[i] = w; }"),
              ElementsAre(4, 9, 16, 25));
  EXPECT_THAT(four("allocate s: Buffer[(1), float32] in registers;\ns[0] = 0f;\n"
                   "for i in serial(4) { s[0] = s[0] + x[i]; y[i] = s[0]; }"),
              ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(
      four("for i in serial(4) { let v: float32 = x[0]; y[0] = v; for j in serial(4) { y[j] = v + float32(j); } }"),
      ElementsAre(1, 2, 3, 4));
}

TEST(TirInterp, ParallelLoopsMayRunBackwards) {
  const std::string races = "for i in parallel(4) { for j in serial(4) { y[j] = x[i]; } }";
  const auto run = [&](bool reverse) {
    return numbers(run_text("(x: Buffer[(4), float32]) -> (y: Buffer[(4), float32])", races, {floats({1, 2, 3, 4})},
                            {.reverse_parallel = reverse})[0])[0];
  };
  EXPECT_EQ(run(false), 4);
  EXPECT_EQ(run(true), 1);
}

struct LoopsCalledOff {};

TEST(TirInterp, LoopsMayBeCalledOff) {
  const InterruptScope scope([] { throw LoopsCalledOff(); });
  EXPECT_THROW(four("for i in serial(4) { for j in serial(1000000) { y[i] = x[i]; } }"), LoopsCalledOff);
}

TEST(TirInterp, NumbersAreThoseOfTheIr) {
  EXPECT_EQ(one("floordiv(-7, 2)", "int64"), -4);
  EXPECT_EQ(one("floormod(-7, 2)", "int64"), 1);
  EXPECT_EQ(one("truncdiv(-7, 2)", "int64"), -3);
  EXPECT_EQ(one("truncmod(-7, 2)", "int64"), -1);
  EXPECT_EQ(one("truncdiv(7, 0)", "int64"), 0);
  EXPECT_EQ(one("floormod(7, 0)", "int64"), 0);
  EXPECT_EQ(one("truncdiv(-128i8, -1i8)", "int8"), -128);
  EXPECT_EQ(one("200u8 + 100u8", "uint8"), 44);
  EXPECT_EQ(one("int8(300)", "int8"), 44);
  EXPECT_EQ(one("int8(300f)", "int8"), 127);
  EXPECT_EQ(one("uint8(-3f)", "uint8"), 0);
  EXPECT_EQ(one("int32(nanf)", "int32"), 0);
  EXPECT_EQ(one("int64(x[0] / 0f)", "int64"), static_cast<double>(INT64_MAX));
  EXPECT_EQ(one("bool(nanf)", "bool"), 1);
  EXPECT_EQ(one("shift_left(1i32, 40i32)", "int32"), 0);
  EXPECT_EQ(one("shift_right(-8i32, 40i32)", "int32"), -1);
  EXPECT_EQ(one("shift_right(200u8, 3u8)", "uint8"), 25);
  EXPECT_EQ(one("bitwise_not(0u8)", "uint8"), 255);
  EXPECT_EQ(one("pow(-2i32, 3i32)", "int32"), -8);
  EXPECT_EQ(one("pow(2i32, -1i32)", "int32"), 0);
  EXPECT_EQ(one("reinterpret[int32](1f)", "int32"), 0x3f800000);
  EXPECT_EQ(one("1f16 + 0.0004f16", "float16"), 1);
  EXPECT_EQ(one("float16(2049i32)", "float16"), 2048);
  EXPECT_EQ(one("round(2.5f)"), 3);
  EXPECT_EQ(one("nearbyint(2.5f)"), 2);
  EXPECT_EQ(one("fma(x[1], x[2], 1f)"), 7);
  EXPECT_TRUE(std::isnan(one("min(1f, nanf)")));
  EXPECT_TRUE(std::isnan(one("max(nanf, 1f)")));
  EXPECT_EQ(one("let(v: float32 = x[1], v * let(w: float32 = v + 1f, w * v))"), 12);
  EXPECT_EQ(one("reduce_add(x[ramp(0, 1, 4)])"), 10);
  EXPECT_EQ(one("reduce_add(vector_load[float32x2](x[1], 1))"), 7);
}

TEST(TirInterp, BranchesReadOneSide) {
  EXPECT_THAT(four("for i in serial(4) { y[i] = if_then_else(i < 3, x[i + 1], 9f); }"), ElementsAre(2, 3, 4, 9));
  EXPECT_THAT(four("y[ramp(0, 1, 4)] = if_then_else(ramp(0, 1, 4) < broadcast(3, 4), x[ramp(1, 1, 4)], "
                   "broadcast(9f, 4));"),
              ElementsAre(2, 3, 4, 9));
  // A part that both sides share, and one that is computed after the branch again.
  EXPECT_THAT(four("for i in serial(4) {\n%0 = x[i] * 2f + x[i] * 3f + x[i] * 4f;\n"
                   "y[i] = if_then_else(i < 2, %0 + 1f, 0f) + if_then_else(i < 2, 0f, %0) + %0;\n}"),
              ElementsAre(19, 37, 54, 72));
  EXPECT_THAT(four("y[ramp(0, 1, 4)] = if_then_else(ramp(0, 1, 4) < broadcast(3, 4), if_then_else(ramp(0, 1, 4) < "
                   "broadcast(1, 4), broadcast(7f, 4), x[ramp(1, 1, 4)]), broadcast(9f, 4));"),
              ElementsAre(7, 3, 4, 9));
}

TEST(TirInterp, SymbolsAndStridesComeFromTheInputs) {
  const std::string signature = "(x: Buffer[(n, m), float32, strides=(s, 1)]) -> (y: Buffer[(m, n), float32])";
  const std::string body = "for i in serial(n) { for j in serial(m) { y[j, i] = x[i, j]; } }";
  const NDArray x = NDArray::from_vector<float>({2, 3}, kF32, {1, 2, 3, 4, 5, 6});
  const NDArray y = run_text(signature, body, {x})[0];
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(numbers(y), ElementsAre(1, 4, 2, 5, 3, 6));
  const std::string twice = "(x: Buffer[(n), float32], k: Buffer[(n * 2), float32]) -> (y: Buffer[(n), float32])";
  const std::string copy = "for i in serial(n) { y[i] = k[i + n]; }";
  EXPECT_THAT(numbers(run_text(twice, copy, {floats({0, 0}), floats({1, 2, 3, 4})})[0]), ElementsAre(3, 4));
  EXPECT_THAT(kit::user_error_of([&] { run_text(twice, copy, {floats({0, 0}), floats({1, 2, 3})}); }),
              HasSubstr("the input 'k' of shape (3) does not fit 4"));
}

std::string error_of(const std::string& body) {
  return kit::user_error_of([&] { four(body); });
}

TEST(TirInterp, ErrorsHaveAPlace) {
  EXPECT_EQ(error_of("for i in serial(5) { y[i] = 1f; }"),
            "t.tir:3:22: f: index 4 is out of bounds for dimension 0 of 'y', which is 4, in `y[i] = 1f`");
  EXPECT_THAT(error_of("for i in serial(4) { y[i] = x[i - 1]; }"),
              HasSubstr("index -1 is out of bounds for dimension 0 of 'x'"));
  EXPECT_THAT(error_of("evaluate vector_load[float32x4](x[2], 0);"), HasSubstr("element 4 is out of bounds for 'x'"));
  EXPECT_THAT(error_of("for i in serial(3) { y[i] = 1f; }"), HasSubstr("'f' leaves element 3 of 'y' without a value"));
  EXPECT_EQ(error_of("assert x[0] < 0f, \"below zero\";"), "below zero");
  EXPECT_THAT(error_of("x[0] = 1f;"), HasSubstr("the function stores to its input 'x'; store to a result"));
  EXPECT_THAT(error_of("evaluate int4(x[0]) + 3i4;"), HasSubstr("does not compute with int4"));
  EXPECT_THAT(error_of("evaluate abs(float8_e5m2(x[0]));"), HasSubstr("does not compute with float8_e5m2"));
  EXPECT_THAT(error_of("evaluate 0i1;"), HasSubstr("does not compute with int1"));
  EXPECT_THAT(error_of("for i in parallel(2) { for j in parallel(2) { } }"), HasSubstr("stands inside another"));
  const std::string signature = "(x: Buffer[(4), float32]) -> (y: Buffer[(n), float32])";
  EXPECT_THAT(kit::user_error_of([&] { run_text(signature, "", {floats({1, 2, 3, 4})}); }),
              HasSubstr("do not tell the symbol 'n'"));
  EXPECT_THAT(kit::user_error_of([&] { run_text(signature, "", {}); }), HasSubstr("'f' takes 1 inputs, got 0"));
  EXPECT_THAT(kit::user_error_of([&] { run_text(signature, "", {NDArray::zeros({4}, kI64)}); }),
              HasSubstr("the input 'x' is float32 of 1 dimensions, got int64 of 1"));
}

TEST(TirInterp, UnwrittenElementsMayBeReadButNotUsed) {
  const std::string head = "allocate a: Buffer[(4), float32] in registers;\na[0] = 5f;\n";
  EXPECT_THAT(four(head + "for i in serial(4) { y[i] = select(i < 4, a[0], a[1]); }"), ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(four(head + "a[2] = a[1] + 1f; a[2] = 3f; for i in serial(4) { y[i] = a[2]; }"), ElementsAre(3, 3, 3, 3));
  const std::string used = "depends on an element that was never written";
  EXPECT_THAT(error_of(head + "for i in serial(4) { y[i] = a[i] * 0f; }"),
              HasSubstr("leaves element 1 of 'y' without a value"));
  EXPECT_THAT(error_of(head + "for i in serial(4) { y[i] = reduce_add(a[ramp(0, 1, 4)]); }"),
              HasSubstr("element 0 of 'y'"));
  EXPECT_THAT(error_of(head + "if (a[1] < 0f) { }"), HasSubstr(used));
  EXPECT_THAT(error_of(head + "assert a[1] < 0f, \"no\";"), HasSubstr(used));
  EXPECT_THAT(error_of(head + "y[int64(a[1])] = 1f;"), HasSubstr(used));
  EXPECT_THAT(error_of(head + "for i in serial(2) {\nallocate b: Buffer[(1), float32] in registers;\n"
                              "if (i == 0) { b[0] = 1f; }\ny[i] = b[0];\n}"),
              HasSubstr("element 1 of 'y'"));
}

TEST(TirInterp, DeepExpressionsNeedNoStack) {
  const Buffer y = make_buffer("y", kF32, {make_int(1)});
  PrimExpr e = make_float(0);
  for (int i = 0; i < 100000; ++i) e = make_intrinsic(Intrinsic::abs, kF32, {e + make_float(1)});
  const auto f = tir::make_prim_func("f", {y}, 1, tir::make_store(y, e, {make_int(0)}));
  EXPECT_THAT(numbers(run_prim_func(f, {})[0]), ElementsAre(100000));
}

// Elements that differ in their bits; of NaN any bits are one.
std::string difference(const std::vector<NDArray>& got, const std::vector<NDArray>& want) {
  for (size_t k = 0; k < want.size(); ++k) {
    for (int64_t i = 0; i < want[k].num_elements(); ++i) {
      const double a = element_as_double(got[k].tensor(), i), b = element_as_double(want[k].tensor(), i);
      const bool same = std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
      if (!same) return fmt::format("result {}, element {}: got {}, wanted {}", k, i, a, b);
    }
  }
  return "";
}

std::vector<NDArray> random_inputs(const tir::PrimFunc& function, kit::Random& random) {
  std::vector<NDArray> inputs;
  for (size_t i = 0; i + static_cast<size_t>(function->num_outputs) < function->params.size(); ++i) {
    const Buffer& param = function->params[i];
    inputs.push_back(NDArray::empty(*as_shape(param->shape), param->dtype));
    for (int64_t k = 0; k < inputs.back().num_elements(); ++k) {
      if (param->dtype.is_float()) {
        set_element(inputs.back().tensor(), k, static_cast<double>(random.uniform()) * 8 - 4);
      } else {
        set_element_int(inputs.back().tensor(), k, random.integer(-100, 100));
      }
    }
  }
  return inputs;
}

// A random function that writes all of its outputs, renamed.
tir::PrimFunc complete_function(kit::Random& random, const std::string& symbol) {
  const tir::PrimFunc function = kit::random_function(random);
  std::vector<tir::Stmt> items;
  for (size_t i = function->params.size() - static_cast<size_t>(function->num_outputs); i < function->params.size();
       ++i) {
    const Buffer& param = function->params[i];
    const PrimVar at = make_prim_var("at");
    items.push_back(tir::make_for(at, make_int(0), param->shape[0], tir::ForKind::serial,
                                  tir::make_store(param, make_const(7, param->dtype), {at})));
  }
  items.push_back(function->body);
  return tir::make_prim_func(symbol, function->params, function->num_outputs, tir::make_seq(items));
}

// LowerMath changes results in their last places; the other passes keep every bit.
TEST(TirInterp, PassesKeepEveryBit) {
  EXPECT_TRUE(kit::holds<tir::PrimFunc>(
      {.seed = 21,
       .runs_ci = 200,
       .runs_full = 3000,
       .generate = [](kit::Random& random) { return complete_function(random, "f"); },
       .shrink = {},
       .show = [](const tir::PrimFunc& f) { return tir::print_function(f); },
       .check = [](const tir::PrimFunc& f) -> std::optional<std::string> {
         kit::Random random(3);
         const std::vector<NDArray> inputs = random_inputs(f, random);
         IRModule module = make_module();
         module->add_function(make_global_var("f"), f);
         const std::vector<NDArray> want = run_prim_func(f, inputs);
         if (std::string d = difference(run_prim_func(f, inputs, {.reverse_parallel = true}), want); !d.empty())
           return "backwards: " + d;
         for (const pass::Pass& pass : tir_passes::pipeline()) {
           if (pass.info.name == "LowerMath") continue;
           module = pass.run(module, {});
           const auto after = module->lookup("f").cast<tir::PrimFuncNode>();
           const std::string d = difference(run_prim_func(after, inputs), want);
           if (!d.empty()) return pass.info.name + ": " + d + "\n" + tir::print_function(after);
         }
         return std::nullopt;
       }}));
}

TEST(TirInterp, NativeCodeGivesTheSameBits) {
  kit::Random random(31);
  std::vector<tir::PrimFunc> functions;
  const int count = kit::case_count(60, 600);
  for (int i = 0; i < count; ++i)
    functions.push_back(tir_passes::run_pipeline(complete_function(random, fmt::format("f{}", i))));
  // Compiles a third of the functions as C, because the C compiler takes longer.
  const size_t num_in_c = functions.size() / 3;
  const kit::NativeKernels kernels(functions),
      as_c({functions.begin(), functions.begin() + static_cast<std::ptrdiff_t>(num_in_c)},
           "-std=c11 -O1 -Wall -Werror");
  for (size_t i = 0; i < functions.size(); ++i) {
    const std::vector<NDArray> inputs = random_inputs(functions[i], random), want = run_prim_func(functions[i], inputs);
    EXPECT_EQ(difference(kernels.run(i, inputs), want), "") << tir::print_function(functions[i]);
    if (i >= num_in_c) continue;
    EXPECT_EQ(difference(as_c.run(i, inputs), want), "") << "as C: " << tir::print_function(functions[i]);
  }
}

}  // namespace
}  // namespace headrace::interp
