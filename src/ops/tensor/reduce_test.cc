#include "ops/tensor/reduce.h"

#include "ops/tests/op_testing.h"
#include "ops/tests/expected.h"

namespace headrace::ops::testing {
namespace {

using ReduceTest = OpTest;

void expect_reduced(const Expr& call, const Case& expected, DataType dtype, double tolerance) {
  SCOPED_TRACE(fmt::format("{} of {}", call.as<relay::CallNode>()->as_op()->name, dtype));
  std::vector<NDArray> args;
  for (const Tensor& input : expected.inputs) args.push_back(make_array(input.shape, input.data, dtype));
  expect_near(evaluate(call, args)[0], expected.output.shape, expected.output.data, tolerance);
}

TEST_F(ReduceTest, AgreesWithNumpy) {
  const std::vector<std::tuple<const char*, const Case&, const Case&>> runs{
      {"sum", kReduce_sum, kReduceAll_sum},    {"mean", kReduce_mean, kReduceAll_mean},
      {"max", kReduce_max, kReduceAll_max},    {"min", kReduce_min, kReduceAll_min},
      {"prod", kReduce_prod, kReduceAll_prod},
  };
  for (const auto& [op, some, all] : runs) {
    for (const auto& [dtype, tolerance] : {std::pair(DataType::float_(64), 1e-13), {DataType::float_(32), 1e-5}}) {
      expect_reduced(reduce(op, any_arg(), Shape{0, -1}), some, dtype, tolerance);
      expect_reduced(reduce(op, any_arg(), Shape{1}, false, true), some, dtype, tolerance);
      expect_reduced(reduce(op, any_arg()), all, dtype, tolerance);
    }
  }
  expect_reduced(reduce("sum", any_arg(), Shape{1}, true), kReduceKeep_sum, DataType::float_(32), 1e-6);
  expect_reduced(variance(any_arg(), any_arg(), Shape{2}), kVariance, DataType::float_(64), 1e-14);
  expect_reduced(variance(any_arg(), any_arg(), Shape{2}, false, true), kVarianceUnbiased, DataType::float_(64), 1e-14);
}

TEST_F(ReduceTest, ArgumentsOfExtrema) {
  const DataType f32 = DataType::float_(32);
  expect_reduced(arg_reduce("argmax", any_arg(), Shape{1}), kArgMax, f32, 0);
  expect_reduced(arg_reduce("argmax", any_arg(), Shape{1}, false, true), kArgMaxLast, f32, 0);
  expect_reduced(arg_reduce("argmin", any_arg(), Shape{1}), kArgMin, f32, 0);
  expect_reduced(arg_reduce("argmin", any_arg(), Shape{1}, false, true), kArgMinLast, f32, 0);
  // Over all axes the index counts flattened elements, as numpy's does; the first NaN is the extremum.
  const NDArray x = make_array({2, 2}, {1, kNan, 5, kNan});
  EXPECT_EQ(to_doubles(evaluate(arg_reduce("argmax", any_arg()), {x})[0]), (std::vector<double>{1}));
  EXPECT_EQ(to_doubles(evaluate(arg_reduce("argmin", any_arg()), {x})[0]), (std::vector<double>{1}));
  expect_near(evaluate(reduce("max", any_arg(), Shape{1}), {x})[0], {2}, {kNan, kNan}, 0);
}

TEST_F(ReduceTest, IntegersAndBools) {
  const NDArray i = make_array({3}, {100, 100, -1}, DataType::int_(8));
  EXPECT_EQ(to_doubles(evaluate(reduce("sum", any_arg()), {i})[0]), (std::vector<double>{-57}));
  EXPECT_EQ(to_doubles(evaluate(reduce("min", any_arg()), {i})[0]), (std::vector<double>{-1}));
  const NDArray b = make_array({2, 2}, {1, 0, 1, 1}, DataType::bool_());
  EXPECT_EQ(to_doubles(evaluate(reduce("all", any_arg(), Shape{1}), {b})[0]), (std::vector<double>{0, 1}));
  EXPECT_EQ(to_doubles(evaluate(reduce("any", any_arg(), Shape{1}), {b})[0]), (std::vector<double>{1, 1}));
}

TEST_F(ReduceTest, EmptyAxes) {
  const NDArray none = make_array({2, 0}, {});
  EXPECT_EQ(to_doubles(evaluate(reduce("sum", any_arg(), Shape{1}), {none})[0]), (std::vector<double>{0, 0}));
  EXPECT_EQ(to_doubles(evaluate(reduce("prod", any_arg(), Shape{1}), {none})[0]), (std::vector<double>{1, 1}));
  EXPECT_THAT(relate_error(reduce("max", any_arg(), Shape{1}), {tensor(Shape{2, 0})}),
              ::testing::HasSubstr("is empty"));
  EXPECT_THAT(relate_error(reduce("mean", any_arg()), {tensor(Shape{2, 0})}), ::testing::HasSubstr("is empty"));
  EXPECT_THAT(relate_error(arg_reduce("argmin", any_arg()), {tensor(Shape{0})}), ::testing::HasSubstr("is empty"));
  // eval finds the fault that a symbol hid from the relation.
  const Expr call = reduce("max", any_arg(), Shape{1});
  const EvalInput input{*call.as<relay::CallNode>(), {none}, {}, {make_tensor_type(Shape{2})}};
  EXPECT_THROW((*call.as<relay::CallNode>()->as_op()->find(kEval))(input), UserError);
}

TEST_F(ReduceTest, Types) {
  const PrimExpr n = make_prim_var("n");
  const Type x = tensor({n, make_int(3), make_any()});
  EXPECT_EQ(relate_text(reduce("sum", any_arg(), Shape{1}), {x}), "Tensor[(n, ?), float32]");
  EXPECT_EQ(relate_text(reduce("sum", any_arg(), Shape{-1, 0}, true), {x}), "Tensor[(1, 3, 1), float32]");
  EXPECT_EQ(relate_text(reduce("sum", any_arg(), Shape{0}, false, true), {x}), "Tensor[(n), float32]");
  EXPECT_EQ(relate_text(reduce("sum", any_arg(), Shape{}), {x}), "Tensor[(n, 3, ?), float32]");
  EXPECT_EQ(relate_text(reduce("sum", any_arg()), {x}), relate_text(reduce("sum", any_arg()), {tensor(Shape{2})}));
  EXPECT_EQ(relate_text(arg_reduce("argmax", any_arg(), Shape{1}, true), {x}), "Tensor[(n, 1, ?), int32]");
}

TEST_F(ReduceTest, WrongArgumentsAreNamed) {
  const Type x = tensor(Shape{2, 3}), b = tensor(Shape{2}, DataType::bool_());
  EXPECT_EQ(relate_error(reduce("sum", any_arg(), Shape{2}), {x}),
            "sum: axis 2 is out of range for a tensor of 2 dimensions; argument 0 is Tensor[(2, 3), float32]");
  EXPECT_THAT(relate_error(reduce("sum", any_arg(), Shape{1, -1}), {x}),
              ::testing::HasSubstr("axis -1 is named twice"));
  EXPECT_THAT(relate_error(reduce("sum", any_arg()), {b}), ::testing::HasSubstr("data must be numbers"));
  EXPECT_THAT(relate_error(reduce("all", any_arg()), {x}), ::testing::HasSubstr("data must be bool"));
  EXPECT_THAT(relate_error(variance(any_arg(), any_arg()), {x, tensor(Shape{4})}), ::testing::HasSubstr("broadcast"));
  EXPECT_THAT(relate_error(variance(any_arg(), any_arg()), {x, tensor(Shape{5, 2, 3})}),
              ::testing::HasSubstr("mean must broadcast to data"));
}

TEST_F(ReduceTest, ProductOfAShape) {
  const PrimExpr n = make_prim_var("n");
  const std::vector<Type> types{tensor(Shape{3}, DataType::int_(64))};
  const Values dims{n, make_int(3), make_int(1)};
  const auto values = infer_values(reduce("prod", any_arg()), types, {dims});
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(to_string((*values)[0]), "n * 3");
}

}  // namespace
}  // namespace headrace::ops::testing
