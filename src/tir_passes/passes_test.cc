// Tests each pass on a small function, with golden text; the function's results must stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "interp/tir_interp.h"
#include "kit/dtypes.h"
#include "kit/golden.h"
#include "pass/instruments.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"
#include "tir_passes/pipeline.h"
#include "tir_passes/unroll_loop.h"

namespace headrace::tir_passes {
namespace {

using kit::kF32;

struct Case {
  const char* golden;  // tests/NAME.tir
  std::vector<std::string> passes;
  const char* text;
  double tolerance = 0;  // relative
};

const Case kCases[] = {
    {"vectorize_loop",
     {"VectorizeLoop"},
     R"(prim_func @f(x: Buffer[(64), float32]) -> (y: Buffer[(64), float32]) {
  for i in parallel(8) {
    for lane in vectorized(8) {
      y[i * 8 + lane] = x[i * 8 + lane] * 2f + x[i];
    }
  }
}

prim_func @every_second(x: Buffer[(64), float32]) -> (y: Buffer[(32), float32]) {
  for i in serial(4) {
    for lane in vectorized(8) {
      y[i * 8 + lane] = if_then_else(lane < 7, x[(i * 8 + lane) * 2], float32(lane));
    }
  }
}

prim_func @no_vector(x: Buffer[(64), float32]) -> (y: Buffer[(64), float32]) {
  for lane in vectorized(16) {
    y[lane * 4] = x[lane * 3];
    y[lane * 4 + 1] = 0f;
    y[lane * 4 + 2] = 0f;
    y[lane * 4 + 3] = 0f;
  }
}

prim_func @accumulates(x: Buffer[(64), float32]) -> (y: Buffer[(8), float32]) {
  allocate acc: Buffer[(8), float32] in registers;
  for lane in vectorized(8) {
    acc[lane] = 0f;
  }
  for r in serial(8) {
    for lane in vectorized(8) {
      acc[lane] = fma(x[r], x[r * 8 + lane], acc[lane]);
    }
  }
  for lane in vectorized(8) {
    y[lane] = acc[lane];
  }
}
)"},
    {"unroll_loop",
     {"UnrollLoop"},
     R"(prim_func @f(x: Buffer[(64), float32]) -> (y: Buffer[(64), float32]) {
  for i in serial(16) {
    for j in unrolled(4) {
      let v: float32 = x[i * 4 + j];
      y[i * 4 + j] = v * v;
    }
  }
}

prim_func @from_one(x: Buffer[(64), float32]) -> (y: Buffer[(3), float32]) {
  for i in serial(1) {
    for j: int32 in unrolled(begin=1i32, extent=3i32) {
      y[j - 1i32] = x[j + int32(i)];
    }
  }
}
)"},
    {"lower_math",
     {"LowerMath"},
     R"(prim_func @f(x: Buffer[(64), float32]) -> (y: Buffer[(64), float32]) {
  for i in serial(8) {
    y[ramp(i * 8, 1, 8)] = exp(x[ramp(i * 8, 1, 8)]) + sin(x[ramp(i * 8, 1, 8)]);
  }
}

prim_func @wide(x: Buffer[(64), float32]) -> (y: Buffer[(1), float64]) {
  y[0] = tanh(float64(x[0]));
}
)",
     1e-6},
    {"kernel",
     {"VectorizeLoop", "UnrollLoop", "LowerMath"},
     R"(prim_func @f(x: Buffer[(64), float32]) -> (y: Buffer[(64), float32]) {
  for i in unrolled(2) {
    for lane in vectorized(32) {
      y[i * 32 + lane] = max(x[i * 32 + lane], 0f);
    }
  }
}
)"},
};

IRModule read(const Case& c) { return tir::parse_module(std::string("#[tir_version = \"1\"]\n\n") + c.text, c.golden); }

IRModule run(const Case& c, const IRModule& module) {
  std::vector<pass::Pass> chosen;
  for (const pass::Pass& pass : pipeline()) {
    if (std::find(c.passes.begin(), c.passes.end(), pass.info.name) != c.passes.end()) chosen.push_back(pass);
  }
  pass::PassContext context;
  context.instruments = {pass::make_verify_instrument([](const IRModule& result) { tir::verify(result); })};
  return pass::run_passes(chosen, module, context);
}

std::vector<double> results(const BaseFunc& function) {
  NDArray x = NDArray::empty({64}, kF32);
  for (int64_t i = 0; i < 64; ++i) x.data<float>()[i] = 0.1F * static_cast<float>(i) - 2;
  std::vector<double> numbers;
  for (const NDArray& y : interp::run_prim_func(function.cast<tir::PrimFuncNode>(), {x})) {
    for (int64_t i = 0; i < y.num_elements(); ++i) numbers.push_back(element_as_double(y.tensor(), i));
  }
  return numbers;
}

TEST(TirPasses, GoldenTextAndSameResults) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.golden);
    const IRModule before = read(c), after = run(c, before);
    EXPECT_TRUE(kit::matches_golden(std::string(HEADRACE_SOURCE_DIR "/src/tir_passes/tests/") + c.golden + ".tir",
                                    tir::print_module(after)));
    for (const auto& [name, function] : before->functions()) {
      const std::vector<double> want = results(function), got = results(after->lookup(name->name_hint));
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_LE(std::abs(got[i] - want[i]), c.tolerance * std::max(1.0, std::abs(want[i])))
            << name->name_hint << "[" << i << "]";
    }
  }
}

TEST(TirPasses, UnchangedFunctionsAreTheSameObject) {
  const IRModule plain = tir::parse_module(
      "#[tir_version = \"1\"]\nprim_func @f() -> (y: Buffer[(8), float32]) { for i in serial(8) { y[i] = 1f; } }");
  for (const pass::Pass& pass : pipeline()) EXPECT_EQ(pass.run(plain, {}), plain) << pass.info.name;
}

TEST(TirPasses, LoopsInLoopsAreUnrolledWithinReason) {
  std::string loops, ends;
  for (int i = 0; i < 6; ++i) {
    loops += fmt::format("for i{} in unrolled(100) {{\n", i);
    ends += "}";
  }
  const std::string text =
      "#[tir_version = \"1\"]\nprim_func @f(x: Buffer[(100), float32]) -> (y: Buffer[(100), float32]) {\n" + loops +
      "y[i0] = x[i5];\n" + ends + "\n}\n";
  const IRModule module = pass::run_passes(pipeline(), tir::parse_module(text, "nest.tir"), {});
  EXPECT_LT(tir::print_module(module).size(), size_t{10'000'000});
}

// The body of a loop is one statement of many operations.
TEST(TirPasses, LongBodiesAreCopiedWithinReason) {
  const Buffer x = make_buffer("x", kF32, to_dims({64})), y = make_buffer("y", kF32, to_dims({64}));
  const auto loops_left = [&](int links) {
    const PrimVar i = make_prim_var("i");
    PrimExpr e = make_load(x, {i});
    for (int k = 0; k < links; ++k) e = make_intrinsic(Intrinsic::exp, kF32, {e});
    const tir::Stmt loop =
        tir::make_for(i, make_int(0), make_int(64), tir::ForKind::unrolled, tir::make_store(y, e, {i}));
    return unroll_loop(tir::make_prim_func("f", {x, y}, 1, loop))->body.is<tir::ForNode>();
  };
  EXPECT_FALSE(loops_left(10));
  EXPECT_TRUE(loops_left(100)) << "6,400 exponentials";
}

TEST(TirPasses, ABrokenResultNamesThePass) {
  const auto breaks = [](const IRModule&, const pass::PassContext&) {
    return tir::parse_module("#[tir_version = \"1\"]\nprim_func @f() -> () { evaluate exp(1); }");
  };
  pass::PassContext context;
  context.instruments = {pass::make_verify_instrument([](const IRModule& module) { tir::verify(module); })};
  try {
    pass::run_passes({{{"Breaks", 0, {}}, breaks}}, make_module(), context);
    FAIL() << "no error";
  } catch (const InternalError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("after pass Breaks: the loop program is not well-formed"));
    EXPECT_THAT(e.what(), testing::HasSubstr("exp of int64 in `exp(1)`"));
  }
}

// A kernel of a long chain of ops, deeper than any stack of calls should be.
TEST(TirPasses, DeepExpressionsNeedNoStack) {
  const Buffer x = make_buffer("x", kF32, to_dims({8})), y = make_buffer("y", kF32, to_dims({8}));
  const PrimVar lane = make_prim_var("lane");
  PrimExpr e = make_load(x, {lane});
  for (int i = 0; i < 50000; ++i) e = make_intrinsic(Intrinsic::abs, kF32, {e - make_float(1)});
  const tir::Stmt loop =
      tir::make_for(lane, make_int(0), make_int(8), tir::ForKind::vectorized, tir::make_store(y, e, {lane}));
  const tir::PrimFunc made = run_pipeline(tir::make_prim_func("f", {x, y}, 1, loop));
  EXPECT_EQ(made->body.as<tir::BufferStoreNode>()->value->dtype, kF32.with_lanes(8));
}

}  // namespace
}  // namespace headrace::tir_passes
