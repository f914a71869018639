// Breaks each rule once, and checks that well-formed functions have no breach.
#include "tir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/dtypes.h"
#include "kit/errors.h"
#include "kit/tir_programs.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace headrace::tir {
namespace {

using kit::kF32;
using kit::kI32;
using testing::HasSubstr;

// Returns the breaches of a function with x: (8, 4) float32, y: (8) float32, n symbolic.
std::string fault_in(const std::string& body) {
  const std::string text =
      "#[tir_version = \"1\"]\nprim_func @f(x: Buffer[(8, 4), float32], m: Buffer[(n), int64]) -> "
      "(y: Buffer[(8), float32]) {\n" +
      body + "\n}\n";
  return kit::user_error_of([&] { verify(parse_module(text, "t.tir")); });
}

TEST(TirVerify, WellFormedFunctionsHaveNoBreach) {
  EXPECT_EQ(fault_in("for i in parallel(8) { let v: float32 = x[i, 0]; y[i] = v * 2f; }"), "");
  EXPECT_EQ(fault_in("for i in serial(n) { y[0] = float32(m[i]); }\nfor i in serial(n) { y[0] = 1f; }"), "");
  EXPECT_EQ(fault_in("y[0] = let(v: float32 = x[0, 0], let(w: float32 = v, v * w));"), "");
  EXPECT_EQ(fault_in("allocate a: Buffer[(4), float32] in registers;\n"
                     "a[ramp(0, 1, 4)] = vector_load[float32x4](x[0, 0], 8);\ny[0] = reduce_add(a[ramp(0, 1, 4)]);"),
            "");
  kit::Random random(5);
  for (int i = 0; i < 200; ++i) {
    const PrimFunc function = kit::random_function(random);
    EXPECT_EQ(find_breaches(function), std::vector<std::string>{}) << print_function(function);
  }
}

TEST(TirVerify, BreachesAreNamedWithTheirStatement) {
  const std::pair<const char*, const char*> kCases[] = {
      {"for i in parallel(8) { for j in parallel(4) { y[i] = x[i, j]; } }",
       "@f: t.tir:3:24: for j in parallel(4): a parallel loop stands inside another"},
      {"for i in vectorized(8) { for j in parallel(4) { y[i] = x[i, j]; } }", "inside a vectorized one"},
      {"for i in unrolled(n) { y[i] = 1f; }", "a loop that is unrolled has a constant extent"},
      {"for i: float32 in serial(8f) { }", "its variable is float32"},
      {"allocate a: Buffer[(n), float32] in registers;", "an allocation has a constant shape"},
      {"allocate a: Buffer[(4), float32, strides=(2)] in registers;", "an allocation is dense"},
      {"allocate a: Buffer[(-4), float32] in registers;", "the dimension -4 of the buffer 'a' is negative"},
      {"allocate a: Buffer[(4), float32x2] in registers;", "the buffer 'a' holds float32x2"},
      {"y[0] = x[ramp(0, 1, 2), 0];", "y[0] = x[ramp(0, 1, 2), 0]: an index of 'x' before the last is a vector"},
      {"y[1f] = x[0, 0];", "an index of 'y' is float32"},
      {"evaluate exp(1);", "exp of int64 in `exp(1)`"},
      {"evaluate fma(1f, 2f);", "fma takes 3 arguments, not 2"},
      {"evaluate pow(1f, 2f64);", "pow of float32 and float64"},
      {"evaluate bitwise_and(1f, 2f);", "bitwise_and of float32"},
      {"evaluate reinterpret[int64](1f);", "float32 has other bits than int64"},
      {"evaluate sqrt[float64](1f);", "`sqrt[float64](1f)` is float64 but should be float32"},
      {"evaluate if_then_else(1, 2f, 3f);", "a condition of int64"},
      {"evaluate select(broadcast(True, 2), 2f, 3f);", "a condition of boolx2 for float32"},
      {"evaluate ramp(1f, 1f, 4);", "a ramp is one of integers"},
      {"evaluate vector_load[float32x4](1f, 0);", "the first argument is a place in a buffer"},
      {"evaluate vector_load[int8x4](x[0, 0], 0);", "vector_load gives int8x4"},
      {"evaluate ?;", "no statement computes with it"},
      {"evaluate const(\"text\", handle);", "no statement computes with it"}};
  for (const auto& [body, message] : kCases) EXPECT_THAT(fault_in(body), HasSubstr(message)) << body;
}

// Tests built by hand, for breaches that the text form cannot express.
class Built : public testing::Test {
 protected:
  std::string breaches(const Stmt& body, const Array<Buffer>& params = {}, int64_t outputs = 0) {
    return fmt::format("{}", fmt::join(find_breaches(make_prim_func("f", params, outputs, body)), "\n"));
  }
  PrimVar i_ = make_prim_var("i"), n_ = make_prim_var("n");
  Buffer y_ = make_buffer("y", kF32, {make_int(8)});
  Stmt nothing_ = make_seq({});
};

TEST_F(Built, Scopes) {
  EXPECT_THAT(breaches(make_evaluate(i_)), HasSubstr("evaluate i: the variable 'i' is not in scope"));
  const Stmt loop = make_for(i_, make_int(0), make_int(4), ForKind::serial, make_evaluate(i_));
  EXPECT_EQ(breaches(make_seq({loop, loop})), "") << "a copy of a loop binds its variable again";
  EXPECT_THAT(breaches(make_for(i_, make_int(0), make_int(4), ForKind::serial, loop)),
              HasSubstr("for i in serial(4): the variable 'i' is bound within its own scope"));
  EXPECT_THAT(breaches(make_seq({loop, make_evaluate(i_)})), HasSubstr("the variable 'i' is not in scope"));
  const PrimExpr let = make_prim_let(i_, make_int(1), i_ + 1);
  EXPECT_EQ(breaches(make_evaluate(let + let)), "");
  EXPECT_THAT(breaches(make_evaluate(let + i_)), HasSubstr("the variable 'i' is not in scope"));
  EXPECT_THAT(breaches(make_evaluate(make_prim_let(i_, make_int(1), make_prim_let(i_, make_int(2), i_)))),
              HasSubstr("bound within its own scope"));
  EXPECT_THAT(breaches(make_store(y_, make_float(1), {make_int(0)})),
              HasSubstr("'y' is neither a parameter nor allocated"));
  EXPECT_THAT(breaches(make_evaluate(make_load(y_, {make_int(0)}))),
              HasSubstr("'y' is neither a parameter nor allocated"));
  EXPECT_THAT(breaches(make_allocate(y_, Scope::registers, nothing_), {y_}),
              HasSubstr("the buffer 'y' is there already"));
}

TEST_F(Built, Functions) {
  EXPECT_THAT(breaches(nothing_, {y_, y_}), HasSubstr("the buffer 'y' is two parameters"));
  EXPECT_THAT(breaches(nothing_, {y_}, 2), HasSubstr("it has 2 outputs among 1 parameters"));
  EXPECT_THAT(breaches(Stmt()), HasSubstr("a statement is null"));
  EXPECT_THAT(breaches(nothing_, {make_buffer("z", kF32, {make_any()})}),
              HasSubstr("a dimension of the buffer 'z' is not known"));
  EXPECT_THAT(breaches(nothing_, {make_buffer("z", kF32, {n_ * 2})}), HasSubstr("the variable 'n' is not in scope"));
  EXPECT_EQ(breaches(nothing_, {make_buffer("z", kF32, {n_ * 2}), make_buffer("k", kF32, {n_})}), "");
  const PrimFunc nameless = make_object<PrimFuncNode>();
  EXPECT_THAT(find_breaches(nameless)[0], HasSubstr("it has no global_symbol"));
  auto store = make_object<BufferStoreNode>();
  store->buffer = y_;
  store->value = make_int(1, kI32);
  store->indices = {make_int(0), make_int(1)};
  const std::string both = breaches(store, {y_});
  EXPECT_THAT(both, HasSubstr("'y' has 1 dimensions, but 2 indices are given"));
  EXPECT_THAT(both, HasSubstr("int32 is stored to a place of float32"));
}

TEST_F(Built, DeepExpressionsNeedNoStack) {
  PrimExpr e = make_float(1);
  for (int k = 0; k < 100000; ++k) e = make_intrinsic(Intrinsic::sin, kF32, {e});
  EXPECT_EQ(breaches(make_evaluate(e)), "");
}

}  // namespace
}  // namespace headrace::tir
