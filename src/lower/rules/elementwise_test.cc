// Elementwise ops, broadcasting and reductions against the interpreter.
#include "ops/tensor/elementwise.h"

#include <gtest/gtest.h>

#include "lower/compute_rule.h"
#include "lower/rules/tests/rule_cases.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/reduce.h"

namespace headrace::lower {
namespace {

using Args = std::vector<Expr>;

TEST(ElementwiseRules, Functions) {
  RuleCases cases;
  auto unary = [&](const char* op, double low, double high, double tolerance = 2e-6, bool has_specials = true) {
    for (const DataType dtype : {kF32, kF64, kF16}) {
      const double t = dtype == kF16 ? 2e-3 : dtype == kF64 ? 1e-14 : tolerance;
      cases.add(
          fmt::format("{} {}", op, dtype), {{{3, 37}, dtype, low, high, has_specials}},
          [=](const Args& a) { return ops::unary(op, a[0]); }, t);
    }
  };
  for (const char* op : {"exp", "sigmoid", "tanh", "erf", "sin", "cos", "atan", "asinh"}) unary(op, -5, 5);
  for (const char* op : {"log", "log2", "log10", "sqrt", "rsqrt"}) unary(op, 0.01, 9);
  for (const char* op : {"asin", "acos", "atanh", "tan"}) unary(op, -0.9, 0.9, 2e-6, false);
  for (const char* op : {"sinh", "cosh"}) unary(op, -3, 3);
  unary("acosh", 1.01, 9, 2e-6, false);
  for (const char* op : {"floor", "ceil", "trunc", "round", "nearbyint", "abs", "negative", "sign", "nn.relu"})
    unary(op, -5, 5, 0);
  for (const char* op : {"isnan", "isinf", "isfinite"}) unary(op, -5, 5, 0);
  for (const char* op : {"floor", "round", "nearbyint", "abs", "negative", "sign", "nn.relu"}) {
    for (const DataType dtype : {kI32, kI8, kU8}) {
      cases.add(
          fmt::format("{} {}", op, dtype), {{{3, 37}, dtype, dtype == kU8 ? 0.0 : -128.0, 127}},
          [=](const Args& a) { return ops::unary(op, a[0]); }, 0);
    }
  }
  cases.add("bfloat16 exp", {{{3, 37}, kBF16}}, [](const Args& a) { return ops::unary("exp", a[0]); }, 8e-3);
  for (const char* op : {"round", "nearbyint"}) {
    for (const DataType dtype : {kF16, kBF16, kF32, kF64}) {
      cases.add(
          fmt::format("{} halves {}", op, dtype), {{{67}, kI8, -20, 20}},
          [=](const Args& a) {
            return ops::unary(op, ops::multiply(ops::cast(a[0], dtype), relay::make_scalar(0.5, dtype)));
          },
          0);
    }
  }
  cases.add("logical_not", {{{70}, kBool, 0, 1}}, [](const Args& a) { return ops::unary("logical_not", a[0]); });
  for (const DataType dtype : {kBool, kI8, kI64}) {
    cases.add(fmt::format("bitwise_not {}", dtype), {{{70}, dtype, 0, dtype == kBool ? 1.0 : 100.0}},
              [](const Args& a) { return ops::unary("bitwise_not", a[0]); });
  }
  cases.check();
}

TEST(ElementwiseRules, WithAttributes) {
  RuleCases cases;
  for (const DataType dtype : {kF32, kF16, kI32, kI8, kU8, kI64}) {
    const double low = dtype == kU8 ? 0 : -100;
    cases.add(
        fmt::format("clip {}", dtype), {{{5, 19}, dtype, low, 100, dtype.is_float()}},
        [](const Args& a) { return ops::clip(a[0], -3, 60.5); }, dtype == kF16 ? 1e-3 : 0);
    cases.add(
        fmt::format("clip wide {}", dtype), {{{5, 19}, dtype, low, 100}},
        [](const Args& a) { return ops::clip(a[0], -1e30, 1e30); }, 0);
    cases.add(
        fmt::format("copy {}", dtype), {{{5, 19}, dtype, low, 100}},
        [](const Args& a) { return ops::unary("copy", a[0]); }, 0);
    cases.add(
        fmt::format("zeros_like {}", dtype), {{{5, 19}, dtype, low, 100}},
        [](const Args& a) { return ops::unary("zeros_like", a[0]); }, 0);
    cases.add(
        fmt::format("ones_like {}", dtype), {{{5, 19}, dtype, low, 100}},
        [](const Args& a) { return ops::unary("ones_like", a[0]); }, 0);
  }
  cases.add("leaky_relu", {{{5, 19}, kF32, -3, 3, true}}, [](const Args& a) { return ops::leaky_relu(a[0], 0.1); });
  cases.add("prelu", {{{2, 5, 19}}, {{5}}}, [](const Args& a) { return ops::prelu(a[0], a[1], 1); });
  cases.add("prelu last", {{{2, 5, 19}}, {{19}}}, [](const Args& a) { return ops::prelu(a[0], a[1], -1); });
  cases.add("dropout", {{{5, 19}}}, [](const Args& a) { return ops::dropout(a[0], 0.3); }, 0);
  std::vector<DataType> all = {kF16, kBF16, kF32, kF64, kI8, kU8, kI32, kI64, kBool};
  for (const char* narrow :
       {"int4", "uint2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"})
    all.push_back(DataType::parse(narrow));
  for (const DataType from : all) {
    for (const DataType to : all) {
      const bool is_bool = from == kBool, is_u8 = from.is_uint();
      // From float64 to 16 bits the interpreter goes by way of float32, native code does not.
      cases.add(
          fmt::format("cast {} {}", from, to),
          {{{67},
            from,
            is_bool || is_u8 ? 0.0 : -300.0,
            is_bool ? 1.0 : 300.0,
            from.is_float() || from.is_narrow_float()}},
          [=](const Args& a) { return ops::cast(a[0], to); },
          from == kF64 && to.is_float() && to.bits() == 16 ? 8e-3 : 0);
    }
  }
  cases.check();
}

TEST(NarrowRules, MovedAndQuantized) {
  RuleCases cases;
  for (const char* dtype : {"int4", "uint2", "float8_e5m2", "float4_e2m1fn"}) {
    const DataType narrow = DataType::parse(dtype);
    const auto add = [&](std::string_view call, const std::vector<In>& inputs) {
      std::string params;
      for (const In& in : inputs)
        params += fmt::format("{}%x{}: Tensor[({}), {}]", params.empty() ? "" : ", ", &in - inputs.data(),
                              fmt::join(in.shape, ", "), in.dtype);
      cases.add_text(fmt::format("{} {}", call, dtype), fmt::format("fn ({}) {{ {} }}", params, call), inputs, 0);
    };
    const In x{{5, 19}, narrow, 0, 3}, y{{5, 19}, narrow, 0, 3};
    add("transpose(%x0)", {x});
    add("reshape(%x0, newshape=[19, 5])", {x});
    add("concatenate((%x0, %x1), axis=1)", {x, y});
    add("strided_slice(%x0, begin=[1, 2], end=[5, 17], strides=[2, 3])", {x});
    add("take(%x0, %x1, axis=1)", {x, In{{7}, kI32, 0, 18}});
    add("where(%x0, %x1, %x2)", {In{{5, 1}, kBool, 0, 1}, x, y});
    add("ones_like(%x0)", {x});
    add("cast(ones_like(%x0), dtype=\"float32\")", {x});
    if (!narrow.is_narrow_int()) continue;
    add(fmt::format("qnn.quantize(%x0, %x1, %x2, out_dtype=\"{}\", axis=1)", dtype),
        {In{{5, 19}, kF32, -20, 20}, In{{19}, kF32, 0.5, 2}, In{{19}, kI32, 0, 1}});
    add("qnn.dequantize(%x0, 0.5f, 1)", {x});
  }
  cases.check();
}

TEST(NarrowRules, ConstantsKeepTheirCodes) {
  // Infinity and NaN, which a cast of a float would not give.
  for (const uint8_t code : {uint8_t{0x7c}, uint8_t{0xfd}, uint8_t{0x3d}}) {
    const NDArray data = NDArray::zeros({}, DataType::parse("float8_e5m2"));
    *data.data<uint8_t>() = code;
    const PrimExpr element = element_of(data);
    EXPECT_EQ(element->dtype, data.dtype());
    ASSERT_TRUE(element.is<IntrinsicCallNode>());
    EXPECT_EQ(as_int(element.as<IntrinsicCallNode>()->args[0]), int64_t{code});
  }
  EXPECT_EQ(as_int(element_of(NDArray::from_vector<int8_t>({}, DataType::int_(4), {-3}))), -3);
}

TEST(BroadcastRules, Arithmetic) {
  RuleCases cases;
  for (const char* op :
       {"add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "trunc_divide", "mod",
        "trunc_mod", "floor_mod", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "power"}) {
    const bool is_power = std::string_view(op) == "power";
    for (const DataType dtype : {kF32, kF64, kF16, kI32, kI64, kI8, kU8}) {
      const double low = dtype == kU8 || (is_power && dtype.is_float()) ? 0 : -7;
      const double tolerance = dtype == kF16 ? 2e-3 : is_power || dtype == kF64 ? 2e-6 : 0;
      cases.add(
          fmt::format("{} {}", op, dtype), {{{4, 35}, dtype, low, 7, !is_power}, {{4, 35}, dtype, low, 7, !is_power}},
          [=](const Args& a) { return ops::binary(op, a[0], a[1]); }, tolerance);
    }
  }
  struct Shapes {
    Shape a, b;
  };
  for (const Shapes& s :
       {Shapes{{3, 1, 17}, {2, 1}}, Shapes{{5}, {3, 1}}, Shapes{{}, {7}}, Shapes{{}, {}}, Shapes{{1, 1}, {3, 20}},
        Shapes{{0, 3}, {1, 3}}, Shapes{{1, 8, 7, 7}, {8, 1, 1}}, Shapes{{20000}, {1}}, Shapes{{40, 3, 70, 5}, {5}}}) {
    cases.add(
        fmt::format("add {} {}", fmt::join(s.a, "x"), fmt::join(s.b, "x")), {{s.a}, {s.b}},
        [](const Args& a) { return ops::add(a[0], a[1]); }, 0);
  }
  cases.check();
}

TEST(BroadcastRules, Bits) {
  RuleCases cases;
  for (const char* op : {"logical_and", "logical_or", "logical_xor", "maximum", "minimum", "equal", "less",
                         "bitwise_and", "bitwise_or", "bitwise_xor"}) {
    cases.add(fmt::format("{} bool", op), {{{3, 67}, kBool, 0, 1}, {{67}, kBool, 0, 1}},
              [=](const Args& a) { return ops::binary(op, a[0], a[1]); });
  }
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}) {
    for (const DataType dtype : {kI8, kU8, kI32, kI64}) {
      cases.add(fmt::format("{} {}", op, dtype),
                {{{3, 67}, dtype, dtype == kU8 ? 0.0 : -100.0, 100}, {{3, 67}, dtype, dtype == kU8 ? 0.0 : -2.0, 40}},
                [=](const Args& a) { return ops::binary(op, a[0], a[1]); });
    }
  }
  for (const DataType dtype : {kF32, kF16, kI8, kI64, kBool}) {
    const double high = dtype == kBool ? 1 : 9;
    cases.add(
        fmt::format("where {}", dtype), {{{3, 1}, kBool, 0, 1}, {{3, 19}, dtype, 0, high}, {{19}, dtype, 0, high}},
        [](const Args& a) { return ops::where(a[0], a[1], a[2]); }, 0);
  }
  cases.add("bias_add", {{{2, 5, 7}}, {{5}}}, [](const Args& a) { return ops::bias_add(a[0], a[1]); }, 0);
  cases.add("bias_add last", {{{2, 5, 7}}, {{7}}}, [](const Args& a) { return ops::bias_add(a[0], a[1], -1); }, 0);
  cases.check();
}

TEST(ReduceRules, EveryAxis) {
  RuleCases cases;
  const std::optional<Shape> axes[] = {std::nullopt, Shape{0}, Shape{-1}, Shape{1}, Shape{0, 2}, Shape{}};
  for (const auto& axis : axes) {
    const std::string name = axis ? fmt::format("{}", fmt::join(*axis, ",")) : "all";
    for (const char* op : {"sum", "mean", "max", "min", "prod"}) {
      for (const bool keep : {false, true}) {
        cases.add(
            fmt::format("{} {} {}", op, name, keep), {{{3, 5, 37}, kF32, -1, 1}},
            [=](const Args& a) { return ops::reduce(op, a[0], axis, keep); }, 2e-5);
      }
    }
    for (const char* op : {"argmax", "argmin"}) {
      for (const bool last : {false, true}) {
        cases.add(fmt::format("{} {} {}", op, name, last), {{{3, 5, 37}, kF32, -1, 1}},
                  [=](const Args& a) { return ops::arg_reduce(op, a[0], axis, true, last); });
        cases.add(fmt::format("{} ties {} {}", op, name, last), {{{3, 5, 37}, kI8, -2, 2}},
                  [=](const Args& a) { return ops::arg_reduce(op, a[0], axis, false, last); });
        cases.add(fmt::format("{} nan {} {}", op, name, last), {{{3, 5, 7}, kF32, -1, 1, true}},
                  [=](const Args& a) { return ops::arg_reduce(op, a[0], axis, false, last); });
      }
    }
    cases.add(
        fmt::format("max nan {}", name), {{{3, 5, 7}, kF32, -1, 1, true}},
        [=](const Args& a) { return ops::reduce("max", a[0], axis); }, 0);
    cases.add(fmt::format("any {}", name), {{{3, 5, 70}, kBool, 0, 1}},
              [=](const Args& a) { return ops::reduce("any", a[0], axis); });
    cases.add(fmt::format("all {}", name), {{{3, 5, 70}, kBool, 0, 1}},
              [=](const Args& a) { return ops::reduce("all", a[0], axis); });
  }
  for (const DataType dtype : {kI8, kU8, kI32, kI64, kF16, kBF16, kF64}) {
    for (const char* op : {"sum", "mean", "max", "min", "prod"}) {
      cases.add(
          fmt::format("{} {}", op, dtype), {{{6, 45}, dtype, dtype == kU8 ? 0.0 : -9.0, 9}},
          [=](const Args& a) { return ops::reduce(op, a[0], Shape{1}); }, dtype.bits() == 16 ? 2e-2 : 1e-12);
    }
  }
  cases.add(
      "sum exclude", {{{3, 5, 37}}}, [](const Args& a) { return ops::reduce("sum", a[0], Shape{1}, false, true); },
      1e-5);
  cases.add("sum of nothing", {{{3, 0}}}, [](const Args& a) { return ops::reduce("sum", a[0], Shape{1}); });
  cases.add("prod of nothing", {{{0, 3}}}, [](const Args& a) { return ops::reduce("prod", a[0], Shape{0}); });
  cases.add(
      "variance", {{{3, 5, 37}}, {{3, 1, 37}}}, [](const Args& a) { return ops::variance(a[0], a[1], Shape{1}, true); },
      1e-5);
  cases.add(
      "variance unbiased", {{{3, 37}}, {{3, 1}}},
      [](const Args& a) { return ops::variance(a[0], a[1], Shape{1}, false, true); }, 1e-5);
  cases.check();
}

}  // namespace
}  // namespace headrace::lower
