#include "ops/tensor/elementwise.h"

#include "ops/tests/op_testing.h"
#include "ops/tests/expected.h"

namespace headrace::ops::testing {
namespace {

using ElementwiseTest = OpTest;

struct Unary {
  const char* op;
  const Case& expected;
};

const std::vector<Unary> kUnary{
    {"exp", kUnary_exp},     {"log", kUnary_log},     {"log2", kUnary_log2},    {"log10", kUnary_log10},
    {"sqrt", kUnary_sqrt},   {"rsqrt", kUnary_rsqrt}, {"erf", kUnary_erf},      {"sigmoid", kUnary_sigmoid},
    {"sin", kUnary_sin},     {"cos", kUnary_cos},     {"tan", kUnary_tan},      {"asin", kUnary_asin},
    {"acos", kUnary_acos},   {"atan", kUnary_atan},   {"sinh", kUnary_sinh},    {"cosh", kUnary_cosh},
    {"tanh", kUnary_tanh},   {"asinh", kUnary_asinh}, {"acosh", kUnary_acosh},  {"atanh", kUnary_atanh},
    {"floor", kUnary_floor}, {"ceil", kUnary_ceil},   {"round", kUnary_round},  {"trunc", kUnary_trunc},
    {"abs", kUnary_abs},     {"sign", kUnary_sign},   {"nn.relu", kUnary_relu}, {"negative", kUnary_negative},
};

TEST_F(ElementwiseTest, UnaryFunctionsAgreeWithNumpy) {
  // The results are rounded to the dtype: a few units in the last place of each.
  const std::pair<DataType, double> runs[] = {{DataType::float_(64), 1e-14},
                                              {DataType::float_(32), 1e-6},
                                              {DataType::float_(16), 1e-3},
                                              {DataType::bfloat16(), 8e-3}};
  for (const auto& [op, expected] : kUnary) {
    for (const auto& [dtype, tolerance] : runs) {
      SCOPED_TRACE(fmt::format("{} of {}", op, dtype));
      const Tensor& x = expected.inputs[0];
      expect_near(evaluate(unary(op, any_arg()), {make_array(x.shape, x.data, dtype)})[0], expected.output.shape,
                  expected.output.data, tolerance);
    }
  }
}

TEST_F(ElementwiseTest, IntegersKeepTheirRoundingsAndWrap) {
  const NDArray x = make_array({3}, {-128, 0, 5}, DataType::int_(8));
  EXPECT_EQ(to_doubles(evaluate(unary("floor", any_arg()), {x})[0]), (std::vector<double>{-128, 0, 5}));
  EXPECT_EQ(to_doubles(evaluate(unary("negative", any_arg()), {x})[0]), (std::vector<double>{-128, 0, -5}));
  EXPECT_EQ(to_doubles(evaluate(unary("abs", any_arg()), {x})[0]), (std::vector<double>{-128, 0, 5}));
  EXPECT_EQ(to_doubles(evaluate(unary("bitwise_not", any_arg()), {x})[0]), (std::vector<double>{127, -1, -6}));
}

TEST_F(ElementwiseTest, NanAndInfinity) {
  const NDArray x = make_array({4}, {1, kNan, kInfinity, -kInfinity});
  EXPECT_EQ(to_doubles(evaluate(unary("isnan", any_arg()), {x})[0]), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(to_doubles(evaluate(unary("isinf", any_arg()), {x})[0]), (std::vector<double>{0, 0, 1, 1}));
  EXPECT_EQ(to_doubles(evaluate(unary("isfinite", any_arg()), {x})[0]), (std::vector<double>{1, 0, 0, 0}));
  expect_near(evaluate(relu(any_arg()), {x})[0], {4}, {1, kNan, kInfinity, 0}, 0);
  expect_near(evaluate(clip(any_arg(), 0, 6), {x})[0], {4}, {1, kNan, 6, 0}, 0);
  expect_near(evaluate(unary("sign", any_arg()), {x})[0], {4}, {1, kNan, 1, -1}, 0);
}

TEST_F(ElementwiseTest, ActivationsWithAttributes) {
  const NDArray x = make_array({4}, {-2, -1, 0, 3});
  expect_near(evaluate(leaky_relu(any_arg(), 0.5), {x})[0], {4}, {-1, -0.5, 0, 3}, 0);
  expect_near(evaluate(clip(any_arg(), -1, 2), {x})[0], {4}, {-1, -1, 0, 2}, 0);
  const NDArray i = make_array({3}, {0, 100, 255}, DataType::uint(8));
  EXPECT_EQ(to_doubles(evaluate(clip(any_arg(), -5, 128.5), {i})[0]), (std::vector<double>{0, 100, 128}));
  const auto& [inputs, output] = kPRelu;
  expect_near(evaluate(prelu(any_arg(), any_arg()),
                       {make_array(inputs[0].shape, inputs[0].data), make_array({3}, inputs[1].data)})[0],
              output.shape, output.data, 1e-6);
}

TEST_F(ElementwiseTest, CastTruncatesSaturatesAndWraps) {
  const NDArray x = make_array({5}, {-1.75, 300.5, kNan, kInfinity, -1e30});
  EXPECT_EQ(to_doubles(evaluate(cast(any_arg(), DataType::uint(8)), {x})[0]), (std::vector<double>{0, 255, 0, 255, 0}));
  EXPECT_EQ(to_doubles(evaluate(cast(any_arg(), DataType::int_(8)), {x})[0]),
            (std::vector<double>{-1, 127, 0, 127, -128}));
  EXPECT_EQ(to_doubles(evaluate(cast(any_arg(), DataType::bool_()), {x})[0]), (std::vector<double>{1, 1, 1, 1, 1}));
  const NDArray i = make_array({2}, {300, -1}, DataType::int_(32));
  EXPECT_EQ(to_doubles(evaluate(cast(any_arg(), DataType::uint(8)), {i})[0]), (std::vector<double>{44, 255}));
}

TEST_F(ElementwiseTest, DropoutIsTheIdentityAndOnes) {
  const auto results = evaluate(dropout(any_arg()), {make_array({2}, {3, -4})});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(to_doubles(results[0]), (std::vector<double>{3, -4}));
  EXPECT_EQ(to_doubles(results[1]), (std::vector<double>{1, 1}));
}

TEST_F(ElementwiseTest, Fills) {
  const NDArray x = make_array({2}, {3, -4}, DataType::int_(32));
  EXPECT_EQ(to_doubles(evaluate(unary("zeros_like", any_arg()), {x})[0]), (std::vector<double>{0, 0}));
  EXPECT_EQ(to_doubles(evaluate(unary("ones_like", any_arg()), {x})[0]), (std::vector<double>{1, 1}));
  EXPECT_EQ(to_doubles(evaluate(unary("copy", any_arg()), {x})[0]), (std::vector<double>{3, -4}));
}

TEST_F(ElementwiseTest, TypesKeepSymbols) {
  const PrimExpr n = make_prim_var("n");
  const Type x = tensor({n, make_int(3)});
  EXPECT_EQ(relate_text(unary("exp", any_arg()), {x}), "Tensor[(n, 3), float32]");
  EXPECT_EQ(relate_text(cast(any_arg(), DataType::int_(64)), {x}), "Tensor[(n, 3), int64]");
  EXPECT_EQ(relate_text(unary("isnan", any_arg()), {x}), "Tensor[(n, 3), bool]");
  EXPECT_EQ(relate_text(unary("exp", any_arg()), {make_incomplete_type()}), "unknown");
  EXPECT_EQ(relate_text(dropout(any_arg()), {x}), to_string(Type(make_tuple_type({x, x}))));
}

TEST_F(ElementwiseTest, WrongArgumentsAreNamed) {
  const Type ints = tensor(Shape{2}, DataType::int_(32)), bools = tensor(Shape{2}, DataType::bool_());
  EXPECT_EQ(relate_error(unary("exp", any_arg()), {ints}), "exp: data must be floating point, got Tensor[(2), int32]");
  EXPECT_EQ(relate_error(unary("exp", any_arg()), {}), "exp: takes 1 argument, got 0");
  EXPECT_THAT(relate_error(unary("clip", any_arg()), {ints}), ::testing::HasSubstr("needs attributes of type"));
  EXPECT_THAT(relate_error(unary("logical_not", any_arg()), {ints}), ::testing::HasSubstr("must be bool"));
  EXPECT_THAT(relate_error(unary("negative", any_arg()), {bools}), ::testing::HasSubstr("must be numbers"));
  const Type narrow = tensor(Shape{2}, DataType(DataType::kFloat8E5M2, 8));
  EXPECT_EQ(relate_error(unary("isnan", any_arg()), {narrow}),
            "isnan: no op computes with the floats of Tensor[(2), float8_e5m2]; cast it");
  EXPECT_THAT(relate_error(unary("bitwise_not", any_arg()), {narrow}), ::testing::HasSubstr("integers or bool"));
  EXPECT_THAT(relate_error(unary("bitwise_not", any_arg()), {tensor(Shape{2})}),
              ::testing::HasSubstr("integers or bool"));
  EXPECT_THAT(relate_error(clip(any_arg(), kNan, 1), {ints}), ::testing::HasSubstr("must not be NaN"));
  EXPECT_THAT(relate_error(cast(any_arg(), DataType::handle()), {ints}), ::testing::HasSubstr("cannot cast to"));
  EXPECT_THAT(relate_error(prelu(any_arg(), any_arg()), {tensor(Shape{1, 3, 2}), tensor(Shape{4})}),
              ::testing::HasSubstr("alpha must have shape (3), the data's axis 1, got Tensor[(4), float32]"));
  EXPECT_THAT(relate_error(unary("exp", any_arg()), {make_tuple_type({})}),
              ::testing::HasSubstr("argument 0 must be a tensor"));
}

TEST_F(ElementwiseTest, ValuesPassThroughCastAndNegative) {
  const PrimExpr n = make_prim_var("n");
  const std::vector<Type> types{tensor(Shape{2}, DataType::int_(64))};
  const Values values{n, make_int(3)};
  const auto same = infer_values(cast(any_arg(), DataType::int_(64)), types, {values});
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(to_string((*same)[0]), "n");
  EXPECT_FALSE(infer_values(cast(any_arg(), DataType::bool_()), types, {values}).has_value());
  EXPECT_FALSE(infer_values(cast(any_arg(), DataType::float_(32)), types, {values}).has_value());
  EXPECT_FALSE(infer_values(cast(any_arg(), DataType::int_(64)), types, {std::nullopt}).has_value());
  EXPECT_EQ(as_int((*infer_values(unary("negative", any_arg()), types, {values}))[1]), -3);
}

}  // namespace
}  // namespace headrace::ops::testing
