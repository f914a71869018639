#include "ops/nn/normalization.h"

#include "ops/tests/op_testing.h"
#include "ops/tests/expected.h"

namespace headrace::ops::testing {
namespace {

using NormalizationTest = OpTest;

std::vector<NDArray> norm_inputs(const Case& expected, DataType dtype = DataType::float_(64)) {
  std::vector<NDArray> args;
  for (const Tensor& input : expected.inputs) args.push_back(make_array(input.shape, input.data, dtype));
  return args;
}

// onnxruntime computes in float32: 1e-5 covers a few roundings of values of order 10.
void expect_norm(const Expr& call, const Case& expected) {
  SCOPED_TRACE(call.as<relay::CallNode>()->as_op()->name);
  for (DataType dtype : {DataType::float_(64), DataType::float_(32)}) {
    expect_near(evaluate(call, norm_inputs(expected, dtype))[0], expected.output.shape, expected.output.data, 1e-5);
  }
}

TEST_F(NormalizationTest, AgreesWithOnnxruntime) {
  BatchNormAttrs batch;
  batch.epsilon = 1e-3;
  expect_norm(batch_norm(any_arg(), any_arg(), any_arg(), any_arg(), any_arg(), batch), kBatchNorm);
  expect_norm(layer_norm(any_arg(), any_arg(), any_arg()), kLayerNorm);
  expect_norm(softmax(any_arg(), 1), kSoftmax);
  expect_norm(log_softmax(any_arg(), 2), kLogSoftmax);
  LRNAttrs odd;
  odd.size = 3;
  odd.alpha = 0.5;
  expect_norm(lrn(any_arg(), odd), kLrn);
  LRNAttrs even = odd;
  even.size = 4;
  even.beta = 0.5;
  even.bias = 1;
  expect_norm(lrn(any_arg(), even), kLrnEven);
}

TEST_F(NormalizationTest, BatchNormGivesTheStatisticsToo) {
  const auto results =
      evaluate(batch_norm(any_arg(), any_arg(), any_arg(), any_arg(), any_arg()), norm_inputs(kBatchNorm));
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
  expect_near(evaluate(batch_norm(any_arg(), any_arg(), any_arg(), any_arg(), any_arg(), attrs),
                       {data, far, far, mean, variance})[0],
              {1, 1}, {3}, 0);
}

TEST_F(NormalizationTest, SoftmaxOfLargeValuesIsFinite) {
  expect_near(evaluate(softmax(any_arg()), {make_array({2}, {1e30, 1e30})})[0], {2}, {0.5, 0.5}, 0);
  expect_near(evaluate(softmax(any_arg()), {make_array({2}, {-kInfinity, 0})})[0], {2}, {0, 1}, 0);
}

TEST_F(NormalizationTest, Types) {
  const PrimExpr n = make_prim_var("n"), c = make_prim_var("c");
  const Type data = tensor({n, c, make_int(8)}), vector = tensor({c});
  const Type expected = make_tuple_type({data, vector, vector});
  EXPECT_EQ(relate_text(batch_norm(any_arg(), any_arg(), any_arg(), any_arg(), any_arg()),
                        {data, vector, vector, vector, vector}),
            to_string(expected));
  EXPECT_EQ(relate_text(batch_norm(any_arg(), any_arg(), any_arg(), any_arg(), any_arg()),
                        {data, vector, vector, vector, make_incomplete_type()}),
            "unknown");
  EXPECT_EQ(relate_text(softmax(any_arg()), {data}), to_string(data));
}

TEST_F(NormalizationTest, WrongArgumentsAreNamed) {
  const Type data = tensor(Shape{2, 3, 4}), three = tensor(Shape{3}), four = tensor(Shape{4});
  EXPECT_THAT(relate_error(batch_norm(any_arg(), any_arg(), any_arg(), any_arg(), any_arg()),
                           {data, three, three, four, three}),
              ::testing::HasSubstr("nn.batch_norm: moving_mean must have shape (3), axis 1 of data"));
  EXPECT_THAT(relate_error(layer_norm(any_arg(), any_arg(), any_arg()), {data, three, four}),
              ::testing::HasSubstr("gamma must have shape (4)"));
  EXPECT_THAT(relate_error(softmax(any_arg(), 3), {data}), ::testing::HasSubstr("axis 3 is out of range"));
  EXPECT_THAT(relate_error(softmax(any_arg()), {tensor(Shape{2}, DataType::int_(32))}),
              ::testing::HasSubstr("must be floating point"));
  LRNAttrs attrs;
  attrs.size = 0;
  EXPECT_THAT(relate_error(lrn(any_arg(), attrs), {data}), ::testing::HasSubstr("size must be 1 or more"));
}

}  // namespace
}  // namespace headrace::ops::testing
