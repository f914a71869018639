#include "ops/nn/normalization.h"

#include "ops/tests/op_testing.h"
#include "ops/tests/expected.h"

namespace headrace::ops::testing {
namespace {

using NormalizationTest = OpTest;

std::vector<NDArray> arrays(const Case& expected, DataType dtype = DataType::float_(64)) {
  std::vector<NDArray> args;
  for (const Tensor& input : expected.inputs) args.push_back(make_array(input.shape, input.data, dtype));
  return args;
}

// onnxruntime computes in float32: 1e-5 covers a few roundings of values of order 10.
void expect_case(const Expr& call, const Case& expected) {
  SCOPED_TRACE(call.as<relay::CallNode>()->as_op()->name);
  for (DataType dtype : {DataType::float_(64), DataType::float_(32)}) {
    expect_near(evaluate(call, arrays(expected, dtype))[0], expected.output.shape, expected.output.data, 1e-5);
  }
}

Expr x() { return any_arg(); }

TEST_F(NormalizationTest, AgreesWithOnnxruntime) {
  BatchNormAttrs batch;
  batch.epsilon = 1e-3;
  expect_case(batch_norm(x(), x(), x(), x(), x(), batch), kBatchNorm);
  expect_case(layer_norm(x(), x(), x()), kLayerNorm);
  expect_case(softmax(x(), 1), kSoftmax);
  expect_case(log_softmax(x(), 2), kLogSoftmax);
  LRNAttrs odd;
  odd.size = 3;
  odd.alpha = 0.5;
  expect_case(lrn(x(), odd), kLrn);
  LRNAttrs even = odd;
  even.size = 4;
  even.beta = 0.5;
  even.bias = 1;
  expect_case(lrn(x(), even), kLrnEven);
}

TEST_F(NormalizationTest, BatchNormGivesTheStatisticsToo) {
  const auto results = evaluate(batch_norm(x(), x(), x(), x(), x()), arrays(kBatchNorm));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(to_doubles(results[1]), kBatchNorm.inputs[3].data);
  EXPECT_EQ(to_doubles(results[2]), kBatchNorm.inputs[4].data);
}

TEST_F(NormalizationTest, ScaleAndCenterCanBeOff) {
  BatchNormAttrs attrs;
  attrs.scale = attrs.center = false;
  attrs.epsilon = 0;
  const NDArray data = make_array({1, 1}, {7}), far = make_array({1}, {100});
  const NDArray mean = make_array({1}, {1}), variance = make_array({1}, {4});
  expect_near(evaluate(batch_norm(x(), x(), x(), x(), x(), attrs), {data, far, far, mean, variance})[0], {1, 1}, {3},
              0);
}

TEST_F(NormalizationTest, SoftmaxOfLargeValuesIsFinite) {
  expect_near(evaluate(softmax(x()), {make_array({2}, {1e30, 1e30})})[0], {2}, {0.5, 0.5}, 0);
  expect_near(evaluate(softmax(x()), {make_array({2}, {-kInfinity, 0})})[0], {2}, {0, 1}, 0);
}

TEST_F(NormalizationTest, Types) {
  const PrimExpr n = make_prim_var("n"), c = make_prim_var("c");
  const Type data = tensor({n, c, make_int(8)}), vector = tensor({c});
  const Type expected = make_tuple_type({data, vector, vector});
  EXPECT_EQ(relate_text(batch_norm(x(), x(), x(), x(), x()), {data, vector, vector, vector, vector}),
            to_string(expected));
  EXPECT_EQ(relate_text(batch_norm(x(), x(), x(), x(), x()), {data, vector, vector, vector, make_incomplete_type()}),
            "unknown");
  EXPECT_EQ(relate_text(softmax(x()), {data}), to_string(data));
}

TEST_F(NormalizationTest, WrongArgumentsAreNamed) {
  const Type data = tensor(Shape{2, 3, 4}), three = tensor(Shape{3}), four = tensor(Shape{4});
  EXPECT_THAT(relate_error(batch_norm(x(), x(), x(), x(), x()), {data, three, three, four, three}),
              ::testing::HasSubstr("nn.batch_norm: moving_mean must have shape (3), axis 1 of data"));
  EXPECT_THAT(relate_error(layer_norm(x(), x(), x()), {data, three, four}),
              ::testing::HasSubstr("gamma must have shape (4)"));
  EXPECT_THAT(relate_error(softmax(x(), 3), {data}), ::testing::HasSubstr("axis 3 is out of range"));
  EXPECT_THAT(relate_error(softmax(x()), {tensor(Shape{2}, DataType::int_(32))}),
              ::testing::HasSubstr("must be floating point"));
  LRNAttrs attrs;
  attrs.size = 0;
  EXPECT_THAT(relate_error(lrn(x(), attrs), {data}), ::testing::HasSubstr("size must be 1 or more"));
}

}  // namespace
}  // namespace headrace::ops::testing
