// Print and parse: a golden of every node kind, exactness of numbers, sharing, errors, size, random functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kit/golden.h"
#include "kit/dtypes.h"
#include "kit/property.h"
#include "object/structural_equal.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "kit/tir_programs.h"

namespace headrace::tir {
namespace {

using kit::kF32;
using kit::kI32;
using testing::HasSubstr;

// Why `function` does not come back from its text as it was; empty when it does.
std::string round_trip(const PrimFunc& function) {
  const std::string text = print_function(function);
  const PrimFunc again = parse_function(text);
  if (const auto mismatch = first_mismatch(Value(function), Value(again)))
    return fmt::format("{}: {}: {} / {}\n{}", mismatch->path, mismatch->reason, mismatch->left, mismatch->right, text);
  return print_function(again) == text ? "" : "prints differently:\n" + text + print_function(again);
}

PrimFunc around(const Stmt& body, const Array<Buffer>& params) { return make_prim_func("f", params, 1, body); }

// y[0] = value
PrimFunc storing(const PrimExpr& value, const Array<Buffer>& inputs = {}) {
  Array<Buffer> params = inputs;
  params.push_back(make_buffer("y", value->dtype.element(), {make_int(64)}));
  const PrimExpr at =
      value->dtype.lanes() == 1 ? make_int(0) : make_ramp(make_int(0), make_int(1), value->dtype.lanes());
  return around(make_store(params.back(), value, {at}), params);
}

TEST(TirText, EveryNode) {
  const std::string file = HEADRACE_SOURCE_DIR "/src/tir/tests/nodes.tir";
  const PrimVar n = make_prim_var("n"), m = make_prim_var("m", kI32), i = make_prim_var("i"),
                lane = make_prim_var("lane");
  const PrimVar j = make_prim_var("i", kI32), v = make_prim_var("max"), w = make_prim_var("a b", kF32);
  const Buffer x = make_buffer("x", kF32, {n, make_int(16)}, {make_int(16), make_int(1)});
  const Buffer q = make_buffer("x", DataType::int_(8), {make_cast(kIndexType, m) * 2, m});
  const Buffer y = make_buffer("input:0", kF32, {n, make_int(16)}), s = make_buffer("s", DataType::bool_(), {});
  const Buffer acc = make_buffer("acc", kF32, {make_int(16)}), big = make_buffer("big", kF32, {make_int(4)});
  const PrimExpr ramp = make_ramp(make_int(0), make_int(1), 16), load = make_load(x, {i, ramp});
  const PrimExpr scalar = make_load(x, {i, make_int(3)}), less = make_binary(BinaryOp::lt, i, n);
  const auto set = [&](const PrimExpr& value) {
    return make_store(acc, value, {value->dtype.lanes() == 1 ? make_int(1) : ramp});
  };
  const auto intrinsic = [&](Intrinsic which, DataType dtype, Array<PrimExpr> args) {
    return make_intrinsic(which, dtype, std::move(args));
  };
  std::vector<Stmt> items{
      set(load * make_broadcast(make_float(2), 16) + make_broadcast(make_float(1), 16)),
      set(make_binary(BinaryOp::div, scalar, scalar - (scalar - scalar))),
      set(make_select(make_not(less), scalar, make_binary(BinaryOp::max, scalar, make_float(0)))),
      set(make_cast(kF32, floor_div(i, n) + floor_mod(i * 3, n) + make_binary(BinaryOp::div, i, n) +
                              make_binary(BinaryOp::mod, i, n) + make_binary(BinaryOp::min, i, n))),
      set(make_prim_let(w, scalar, w * w)),
      set(intrinsic(Intrinsic::if_then_else, kF32, {less, scalar, intrinsic(Intrinsic::exp, kF32, {scalar})})),
      set(intrinsic(Intrinsic::reinterpret, kF32, {intrinsic(Intrinsic::reinterpret, kI32, {scalar})})),
      set(intrinsic(Intrinsic::reduce_add, kF32, {load})),
      set(intrinsic(Intrinsic::vector_load, kF32.with_lanes(16), {scalar, i})),
      set(intrinsic(Intrinsic::fma, kF32, {scalar, scalar, intrinsic(Intrinsic::pow, kF32, {scalar, scalar})})),
      make_store(s, intrinsic(Intrinsic::isnan, DataType::bool_(), {scalar}), {}),
      make_if(make_binary(BinaryOp::logical_and, less, make_binary(BinaryOp::logical_or, less, make_bool(false))),
              set(scalar), make_if(less, set(scalar), set(make_float(0)))),
      make_evaluate(intrinsic(Intrinsic::prefetch, kI32, {scalar, make_int(8)})),
      make_let(v, i * 4, make_assert(make_binary(BinaryOp::ge, v, make_int(0)), "say \"when\"")),
      make_for(j, make_int(1, kI32), m, ForKind::unrolled, make_evaluate(make_cast(kIndexType, j))),
      make_allocate(big, Scope::workspace, make_seq({make_store(big, scalar, {make_int(0)}), make_evaluate(i)})),
      make_for(lane, make_int(0), make_int(16), ForKind::vectorized, make_store(y, make_load(acc, {lane}), {i, lane}))};
  Stmt body = make_for(i, make_int(0), n, ForKind::parallel, make_allocate(acc, Scope::registers, make_seq(items)));
  const PrimFunc function = copy_with(*make_prim_func("every node", {x, q, y, s}, 2, body), [](PrimFuncNode& copy) {
    copy.attrs.set("tir.noalias", Value(true));
    copy.attrs.set("tiles", Value(Array<Value>{Value(4), Value(1.5), Value("a"), Value(), Value(kF32)}));
    copy.attrs.set("by", Value(Map<std::string, Value>{{"n", Value(-1)}}));
  });
  EXPECT_TRUE(kit::matches_golden(file, print_function(function)));
  EXPECT_EQ(round_trip(function), "");
}

TEST(TirText, NumbersAreExact) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto bits = [](uint64_t b) { return std::bit_cast<double>(b); };
  for (const DataType dtype : {kF32, DataType::float_(64), DataType::float_(16), DataType::bfloat16()}) {
    for (const double value :
         {0.0, -0.0, 0.1, 1e300, -5e-324, 1.9875691500e-4, infinity, -infinity, bits(0x7ff8000000000000),
          bits(0xfff8000000000000), bits(0x7ff8000000000001), bits(0x7ff0000000000001)}) {
      const PrimFunc function = storing(make_float(value, dtype));
      const PrimFunc again = parse_function(print_function(function));
      const auto* read = again->body.as<BufferStoreNode>()->value.as<FloatImmNode>();
      ASSERT_NE(read, nullptr);
      EXPECT_EQ(std::bit_cast<uint64_t>(read->value), std::bit_cast<uint64_t>(value)) << print_function(function);
      EXPECT_EQ(read->dtype, dtype);
    }
  }
  for (const DataType dtype : {kIndexType, kI32, DataType::int_(8), DataType::uint(8), DataType::uint(64),
                               DataType::bool_(), DataType::int_(4), DataType::handle(), DataType::int_(32, 4)}) {
    for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{300}, INT64_MAX, INT64_MIN})
      EXPECT_EQ(round_trip(around(make_evaluate(make_int(value, dtype)), {make_buffer("y", kF32, {})})), "");
  }
}

TEST(TirText, SequencesKeepTheirForm) {
  const auto seq = [](std::vector<Stmt> items) {
    auto made = make_object<SeqNode>();
    for (const Stmt& item : items) made->items.push_back(item);
    return Stmt(made);
  };
  const Stmt a = make_evaluate(make_int(1));
  const auto let = [&](const Stmt& body) { return make_let(make_prim_var("v"), make_int(1), body); };
  const Array<Buffer> params{make_buffer("y", kF32, {})};
  for (const Stmt& body :
       {seq({}), seq({a}), seq({a, a}), seq({seq({})}), seq({a, seq({a, a})}), seq({seq({seq({a, a})})}),
        seq({let(a), a}), seq({a, let(seq({a, a}))}), let(seq({})), let(seq({a})), seq({let(a)}),
        seq({let(seq({a, a})), let(a)}), make_if(make_bool(true), seq({}), seq({}))}) {
    EXPECT_EQ(round_trip(around(body, params)), "");
  }
}

TEST(TirText, OneVariableInTwoLoopsStaysOne) {
  const PrimVar i = make_prim_var("i");
  const Stmt loop = make_for(i, make_int(0), make_int(4), ForKind::serial, make_evaluate(i));
  EXPECT_EQ(round_trip(around(make_seq({loop, loop}), {make_buffer("y", kF32, {})})), "");
}

TEST(TirText, AnyNameReadsBack) {
  for (const char* name :
       {"", "#0", "%0", "a b", "\"", "for", "inff", "nan", "int32x4", "x.y", "x.1", "exp", "\xc3\xa4", "a\nb"}) {
    const Buffer x = make_buffer(name, kF32, {make_int(64)});
    const PrimVar i = make_prim_var(name);
    PrimExpr e = make_load(x, {i});
    for (int k = 0; k < 5; ++k) e = e * e;  // shared parts: %0, %1, ...
    const Stmt loop = make_for(i, make_int(0), make_int(4), ForKind::serial, make_evaluate(e));
    EXPECT_EQ(round_trip(around(loop, {x})), "") << name;
  }
}

TEST(TirText, SharedPartsAreWrittenOnce) {
  const Buffer x = make_buffer("x", kF32, {make_int(64)});
  PrimExpr e = make_load(x, {make_int(0)});
  for (int i = 0; i < 60; ++i) e = make_intrinsic(Intrinsic::tanh, kF32, {e}) * (e + make_float(0.5));
  const PrimFunc function = storing(e, {x});
  EXPECT_LT(print_function(function).size(), 8000u);
  EXPECT_EQ(round_trip(function), "");
}

TEST(TirText, DeepExpressionsNeedNoStack) {
  const Buffer x = make_buffer("x", kF32, {make_int(64)});
  PrimExpr e = make_load(x, {make_int(0)}), left = e;
  for (int i = 0; i < 10000; ++i) e = make_intrinsic(Intrinsic::sin, kF32, {e});
  for (int i = 0; i < 10000; ++i) left = left + make_float(1);
  EXPECT_EQ(round_trip(storing(e, {x})), "");
  EXPECT_EQ(round_trip(storing(left, {x})), "");
  EXPECT_EQ(round_trip(storing(
                make_binary(BinaryOp::sub, make_float(1), make_binary(BinaryOp::sub, make_float(1), left)), {x})),
            "");
}

TEST(TirText, RandomFunctions) {
  EXPECT_TRUE(kit::holds<PrimFunc>({.seed = 11,
                                    .runs_ci = 300,
                                    .runs_full = 5000,
                                    .generate = [](kit::Random& random) { return kit::random_function(random); },
                                    .shrink = {},
                                    .show = [](const PrimFunc& f) { return print_function(f); },
                                    .check = [](const PrimFunc& f) -> std::optional<std::string> {
                                      const std::string wrong = round_trip(f);
                                      return wrong.empty() ? std::nullopt : std::optional(wrong);
                                    }}));
}

std::string error_of(const std::string& text) {
  try {
    parse_module(text, "t.tir");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

// Returns the error of a function with x: (8, 4) float32, y: (8) float32.
std::string error_in(const std::string& body) {
  return error_of("#[tir_version = \"1\"]\nprim_func @f(x: Buffer[(8, 4), float32]) -> (y: Buffer[(8), float32]) {\n" +
                  body + "\n}\n");
}

TEST(TirText, ErrorsSayWhatAndWhere) {
  const std::pair<const char*, const char*> kCases[] = {
      {"y[0] = 1f", "t.tir:4:1: expected ';' after a statement, found '}'"},
      {"y[0] = z;", "t.tir:3:8: 'z' is neither a variable nor a buffer here\n  y[0] = z;\n         ^"},
      {"z[0] = 1f;", "there is no buffer 'z' here to store to"},
      {"y[0, 1] = 1f;", "'y' has 1 dimensions, but 2 indices are given"},
      {"y[0] = x[0];", "'x' has 2 dimensions, but 1 indices are given"},
      {"y[0] = 1;", "a store of int64 to a place of float32"},
      {"y[0] = x[0, 0] + 1;", "'+' of float32 and int64; cast one"},
      {"y[0] = -x[0, 0];", "only a number has a sign; write 0 - x"},
      {"y[0] = float32(3 / 2);", "'/' is the quotient of floats; write floordiv or truncdiv"},
      {"y[0] = foo(1f);", "there is no function 'foo'"},
      {"y[0] = max(1f);", "'max' takes 2 arguments, not 1"},
      {"y[0] = reinterpret(1i32);", "what dtype does it give? Write reinterpret[float32](...)"},
      {"y[0] = 1q;", "'q' is not a suffix of a number"},
      {"evaluate 300i8;", "300 does not fit int8"},
      {"evaluate %0;", "%0 is not defined here"},
      {"evaluate ramp(0, 1, 1);", "a vector has 2 to 65535 lanes, not 1"},
      {"evaluate select(1, 2, 3);", "select needs a condition and two values of one dtype"},
      {"if (1) { }", "the condition of if is int64, not bool"},
      {"assert True, 3;", "expected a message in quotes, found '3'"},
      {"for i in range(8) { }", "expected serial, parallel, vectorized or unrolled"},
      {"for max in serial(8) { }", "'max' is a word of the language; as a name it is written %max"},
      {"for x in serial(8) { }", "'x' is bound already, and this is inside its scope"},
      {"for i: int32 in serial(8) { }", "'i' is int32, its loop begins at int32 and has an extent of int64"},
      {"let v: int64 = 1f;", "'v' is int64, its value float32"},
      {"allocate a: Buffer[(4), float32] in space;", "expected registers or workspace"},
      {"allocate a: Buffer[(k), float32] in registers;", "'k' is neither a variable nor a buffer here"},
      {"allocate a: Buffer[(4), float33] in registers;",
       "expected a dtype such as float32 or int64x8, found 'float33'"},
      {"y[0] = \"a;", "this string does not end on its line"},
      {"for i in serial(8) { y[i] = 1f; ", "expected '}' after a block, found the end of the text"}};
  for (const auto& [body, message] : kCases) EXPECT_THAT(error_in(body), HasSubstr(message)) << body;
  const std::string both = error_in("y[0] = z;\nfor i in serial(8) { y[i] = w; y[i] = 2f; }\nfor i in serial(2) { }");
  EXPECT_THAT(both, HasSubstr("'z'"));
  EXPECT_THAT(both, HasSubstr("'w'"));
  EXPECT_THAT(both, testing::Not(HasSubstr("bound already"))) << "an error inside a loop ends its scope";
}

TEST(TirText, ErrorsOfModules) {
  EXPECT_THAT(error_of("prim_func @f() -> () { }"), HasSubstr("the text must start with #[tir_version = \"1\"]"));
  EXPECT_THAT(error_of("#[tir_version = \"9\"]\n"), HasSubstr("version \"9\" is not known; this reads \"1\""));
  const std::string head = "#[tir_version = \"1\"]\n";
  EXPECT_THAT(error_of(head + "def @f() { }"), HasSubstr("expected 'prim_func' before a function, found 'def'"));
  EXPECT_THAT(error_of(head + "prim_func @f() -> () { }\nprim_func @f() -> () { }"),
              HasSubstr("'@f' is defined twice"));
  EXPECT_THAT(error_of(head + "prim_func @f() -> () attrs {\"a\" = 1, \"a\" = 2} { }"), HasSubstr("is given twice"));
  EXPECT_THAT(error_of(head + "prim_func @f() -> () attrs {a = 1} { }"), HasSubstr("an attribute's name in quotes"));
  EXPECT_THAT(error_of(head + "prim_func @f(x: Buffer[(4), float32, strides=(1, 2)]) -> () { }"),
              HasSubstr("2 strides for 1 dimensions"));
  EXPECT_THROW(parse_function(head), UserError);
  EXPECT_TRUE(is_tir_text("// a comment\n" + head));
  EXPECT_FALSE(is_tir_text("#[version = \"0.0.5\"]\ndef @main() { 1 }"));
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(TirText, TooDeepIsAnError) {
  constexpr int kMany = 20000;
  EXPECT_THAT(error_in("evaluate " + repeated("(", kMany) + "1;"),
              HasSubstr("expressions nest at most 300 levels deep"));
  EXPECT_THAT(error_in("evaluate " + repeated("exp(", kMany) + "1;"), HasSubstr("expressions nest at most"));
  EXPECT_THAT(error_in(repeated("if (True) {", kMany)), HasSubstr("statements nest at most 600 levels deep"));
  EXPECT_THAT(error_in(repeated("{", kMany)), HasSubstr("statements nest at most 600 levels deep"));
  std::string lets;
  for (int i = 0; i < 1000; ++i) lets += fmt::format("let v{}: int64 = 1;", i);
  EXPECT_THAT(error_in(lets), HasSubstr("statements nest at most 600 levels deep"));
  EXPECT_THAT(error_in(repeated("if (True) { } else ", kMany) + "{ }"), HasSubstr("at most 600 conditions"));
  EXPECT_THAT(error_of("#[tir_version = \"1\"]\nprim_func @f() -> () attrs {\"a\" = " + repeated("[", kMany)),
              HasSubstr("attributes nest at most 100 levels deep"));
}

TEST(TirText, ProgramsWithoutTextAreErrors) {
  const Array<Buffer> params{make_buffer("y", kF32, {})};
  const PrimFunc odd = around(make_evaluate(make_int(1, DataType::int_(24))), params);
  EXPECT_THROW(print_function(odd), UserError);
  const PrimFunc attr = copy_with(*around(make_evaluate(make_int(1)), params),
                                  [&](PrimFuncNode& copy) { copy.attrs.set("buffer", Value(params[0])); });
  EXPECT_THROW(print_function(attr), UserError);
  PrimVar v = make_prim_var("v", kF32);
  PrimExpr e = v;
  for (int i = 0; i < 60; ++i) e = e * (e + make_float(0.5));
  EXPECT_THROW(print_function(storing(make_prim_let(v, make_float(1), e))), UserError);
}

TEST(TirText, SummariesAreShort) {
  PrimExpr e = make_prim_var("v", kF32);
  for (int i = 0; i < 100; ++i) e = e * e;
  EXPECT_LE(summary(make_evaluate(e)).size(), 160u);
  EXPECT_EQ(summary(make_for(make_prim_var("i"), make_int(0), make_int(8), ForKind::serial, make_evaluate(e))),
            "for i in serial(8)");
  EXPECT_EQ(summary(make_int(3) + make_prim_var("i")), "3 + i");
}

}  // namespace
}  // namespace headrace::tir
