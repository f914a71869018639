#include "ops/tensor/broadcast.h"

#include "ops/tests/op_testing.h"
#include "ops/tests/expected.h"

namespace headrace::ops::testing {
namespace {

using BroadcastTest = OpTest;

struct Binary {
  const char* op;
  const Case& expected;
};

void expect_binary(const Binary& run, DataType dtype, double tolerance) {
  SCOPED_TRACE(fmt::format("{} of {}", run.op, dtype));
  const auto& [inputs, output] = run.expected;
  expect_near(evaluate(binary(run.op, any_arg(), any_arg()), {make_array(inputs[0].shape, inputs[0].data, dtype),
                                                              make_array(inputs[1].shape, inputs[1].data, dtype)})[0],
              output.shape, output.data, tolerance);
}

TEST_F(BroadcastTest, FloatsAgreeWithNumpy) {
  const std::vector<Binary> runs{
      {"add", kBinary_add},
      {"subtract", kBinary_subtract},
      {"multiply", kBinary_multiply},
      {"divide", kBinary_divide},
      {"power", kBinary_power},
      {"mod", kBinary_mod},
      {"trunc_mod", kBinary_mod},
      {"floor_mod", kBinary_floor_mod},
      {"floor_divide", kBinary_floor_divide},
      {"maximum", kBinary_maximum},
      {"minimum", kBinary_minimum},
      {"equal", kBinary_equal},
      {"not_equal", kBinary_not_equal},
      {"less", kBinary_less},
      {"less_equal", kBinary_less_equal},
      {"greater", kBinary_greater},
      {"greater_equal", kBinary_greater_equal},
  };
  for (const Binary& run : runs) {
    expect_binary(run, DataType::float_(64), 1e-14);
    expect_binary(run, DataType::float_(32), 1e-6);
  }
}

TEST_F(BroadcastTest, IntegersAgreeWithNumpy) {
  const std::vector<Binary> runs{
      {"add", kInt_add},
      {"floor_divide", kInt_floor_divide},
      {"floor_mod", kInt_floor_mod},
      {"mod", kInt_mod},
      {"trunc_mod", kInt_mod},
      {"divide", kInt_divide},
      {"trunc_divide", kInt_divide},
      {"bitwise_and", kInt_bitwise_and},
      {"bitwise_or", kInt_bitwise_or},
      {"bitwise_xor", kInt_bitwise_xor},
  };
  for (const Binary& run : runs) {
    expect_binary(run, DataType::int_(64), 0);
    expect_binary(run, DataType::int_(32), 0);
    expect_binary(run, DataType::int_(8), 0);
  }
}

std::vector<double> ints(const char* op, std::vector<double> a, std::vector<double> b, DataType dtype) {
  const Shape shape{static_cast<int64_t>(a.size())};
  return to_doubles(
      evaluate(binary(op, any_arg(), any_arg()), {make_array(shape, a, dtype), make_array(shape, b, dtype)})[0]);
}

TEST_F(BroadcastTest, IntegerEdgesAreDefined) {
  const DataType i8 = DataType::int_(8), u8 = DataType::uint(8);
  EXPECT_EQ(ints("add", {127, 100}, {1, -100}, i8), (std::vector<double>{-128, 0}));
  EXPECT_EQ(ints("subtract", {0, 5}, {1, 3}, u8), (std::vector<double>{255, 2}));
  EXPECT_EQ(ints("multiply", {100, -128}, {3, -1}, i8), (std::vector<double>{44, -128}));
  EXPECT_EQ(ints("divide", {5, -128}, {0, -1}, i8), (std::vector<double>{0, -128}));
  EXPECT_EQ(ints("mod", {5, -128}, {0, -1}, i8), (std::vector<double>{0, 0}));
  EXPECT_EQ(ints("power", {2, 3, -1, 2}, {5, 0, -3, -1}, i8), (std::vector<double>{32, 1, -1, 0}));
  EXPECT_EQ(ints("left_shift", {1, 1, -1}, {3, 9, 1}, i8), (std::vector<double>{8, 0, -2}));
  EXPECT_EQ(ints("right_shift", {-8, -8, 8, 8}, {1, 9, -1, 2}, i8), (std::vector<double>{-4, -1, 0, 2}));
}

TEST_F(BroadcastTest, LogicalsAndNan) {
  const DataType b = DataType::bool_();
  EXPECT_EQ(ints("logical_and", {0, 0, 1, 1}, {0, 1, 0, 1}, b), (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(ints("logical_or", {0, 0, 1, 1}, {0, 1, 0, 1}, b), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(ints("logical_xor", {0, 0, 1, 1}, {0, 1, 0, 1}, b), (std::vector<double>{0, 1, 1, 0}));
  const NDArray x = make_array({3}, {kNan, 1, kNan}), y = make_array({3}, {1, kNan, kNan});
  expect_near(evaluate(binary("maximum", any_arg(), any_arg()), {x, y})[0], {3}, {kNan, kNan, kNan}, 0);
  expect_near(evaluate(binary("minimum", any_arg(), any_arg()), {x, y})[0], {3}, {kNan, kNan, kNan}, 0);
}

TEST_F(BroadcastTest, WhereAndBiasAdd) {
  const NDArray c = make_array({2, 1}, {1, 0}, DataType::bool_());
  const NDArray x = make_array({3}, {1, 2, 3}), y = make_array({}, {9});
  expect_near(evaluate(where(any_arg(), any_arg(), any_arg()), {c, x, y})[0], {2, 3}, {1, 2, 3, 9, 9, 9}, 0);
  const NDArray data = make_array({1, 2, 2}, {1, 2, 3, 4}), bias = make_array({2}, {10, 20});
  expect_near(evaluate(bias_add(any_arg(), any_arg()), {data, bias})[0], {1, 2, 2}, {11, 12, 23, 24}, 0);
  expect_near(evaluate(bias_add(any_arg(), any_arg(), -1), {data, bias})[0], {1, 2, 2}, {11, 22, 13, 24}, 0);
}

TEST_F(BroadcastTest, ShapesBroadcast) {
  const PrimExpr n = make_prim_var("n"), m = make_prim_var("m"), one = make_int(1), seven = make_int(7);
  const Expr call = add(any_arg(), any_arg());
  auto text = [&](Array<PrimExpr> a, Array<PrimExpr> b) { return relate_text(call, {tensor(a), tensor(b)}); };
  EXPECT_EQ(text({n, seven}, {n, seven}), "Tensor[(n, 7), float32]");
  EXPECT_EQ(text({n, one}, {one, seven}), "Tensor[(n, 7), float32]");
  EXPECT_EQ(text({n + 1, one}, {n + 1, m}), "Tensor[(n + 1, m), float32]");
  EXPECT_EQ(text({n}, {seven}), "Tensor[(7), float32]");
  EXPECT_EQ(text({n}, {m}), "Tensor[(?), float32]");
  EXPECT_EQ(text({make_any()}, {make_any()}), "Tensor[(?), float32]");
  EXPECT_EQ(text({}, {seven, n}), "Tensor[(7, n), float32]");
  EXPECT_EQ(relate_text(binary("less", any_arg(), any_arg()), {tensor({n}), tensor({n})}), "Tensor[(n), bool]");
  EXPECT_EQ(relate_text(call, {tensor({n}), make_incomplete_type()}), "unknown");
}

TEST_F(BroadcastTest, WrongArgumentsAreNamed) {
  const Type f = tensor(Shape{2, 3}), i = tensor(Shape{2, 3}, DataType::int_(32)),
             b = tensor(Shape{3}, DataType::bool_());
  EXPECT_EQ(relate_error(add(any_arg(), any_arg()), {f, tensor(Shape{4})}),
            "add: shapes (2, 3) and (4) cannot be broadcast: axis 1 is 3 and 4");
  EXPECT_THAT(relate_error(add(any_arg(), any_arg()), {f, i}),
              ::testing::HasSubstr("rhs must have dtype float32, got int32"));
  EXPECT_THAT(relate_error(add(any_arg(), any_arg()), {b, b}), ::testing::HasSubstr("operands must be numbers"));
  EXPECT_THAT(relate_error(binary("logical_and", any_arg(), any_arg()), {f, f}),
              ::testing::HasSubstr("operands must be bool"));
  EXPECT_THAT(relate_error(binary("left_shift", any_arg(), any_arg()), {f, f}),
              ::testing::HasSubstr("must be integers"));
  EXPECT_THAT(relate_error(where(any_arg(), any_arg(), any_arg()), {f, f, b}),
              ::testing::HasSubstr("y must have dtype float32, got bool"));
  EXPECT_THAT(relate_error(bias_add(any_arg(), any_arg()), {f, tensor(Shape{2})}),
              ::testing::HasSubstr("bias must have shape (3), axis 1 of data"));
  EXPECT_THAT(relate_error(bias_add(any_arg(), any_arg(), 2), {f, tensor(Shape{3})}),
              ::testing::HasSubstr("axis 2 is out of range for a tensor of 2 dimensions"));
}

TEST_F(BroadcastTest, ValuesOfShapeArithmetic) {
  const PrimExpr n = make_prim_var("n");
  const auto list = [](int64_t size, DataType dtype = DataType::int_(64)) { return tensor(Shape{size}, dtype); };
  auto infer = [&](const char* op, Values a, Values b) {
    const std::vector<Type> types{list(static_cast<int64_t>(a.size())), list(static_cast<int64_t>(b.size()))};
    const auto values = infer_values(binary(op, any_arg(), any_arg()), types, {a, b});
    return values ? fmt::format("{} {}", to_string((*values)[0]), to_string((*values)[1])) : "unknown";
  };
  EXPECT_EQ(infer("multiply", {n, make_int(3)}, {make_int(2)}), "n * 2 6");
  EXPECT_EQ(infer("subtract", {n, make_int(3)}, {make_int(0), make_int(1)}), "n 2");
  EXPECT_EQ(infer("divide", {make_int(-7), make_int(7)}, {make_int(2)}), "-3 3");
  EXPECT_EQ(infer("floor_divide", {make_int(-7), make_int(7)}, {make_int(2)}), "-4 3");
  EXPECT_EQ(infer("divide", {n, n}, {make_int(0)}), "unknown");
  EXPECT_EQ(infer("maximum", {make_int(4), make_int(1)}, {make_int(2)}), "4 2");
  const auto equal = infer_values(binary("equal", any_arg(), any_arg()), {list(1), list(1)}, {Values{n}, Values{n}});
  EXPECT_EQ(as_int((*equal)[0]), 1);
  const auto chosen =
      infer_values(where(any_arg(), any_arg(), any_arg()), {list(2, DataType::bool_()), list(1), list(1)},
                   {Values{make_bool(true), make_bool(false)}, Values{n}, Values{make_int(5)}});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(to_string((*chosen)[0]), "n");
  EXPECT_EQ(as_int((*chosen)[1]), 5);
}

// A column and a row of as many elements make a table, as NumPy has it.
TEST_F(BroadcastTest, ValuesBroadcastByTheirShapes) {
  const Type column = tensor(Shape{2, 1}, DataType::int_(64)), row = tensor(Shape{2}, DataType::int_(64));
  const auto ints = [](const std::optional<Values>& values) {
    std::vector<int64_t> result;
    for (const PrimExpr& value : values.value_or(Values{})) result.push_back(as_int(value).value_or(-1));
    return result;
  };
  const Values ten{make_int(10), make_int(20)}, one{make_int(1), make_int(2)};
  EXPECT_EQ(ints(infer_values(add(any_arg(), any_arg()), {column, row}, {ten, one})),
            (std::vector<int64_t>{11, 12, 21, 22}));
  EXPECT_EQ(
      ints(infer_values(binary("less", any_arg(), any_arg()), {row, column}, {one, Values{make_int(1), make_int(2)}})),
      (std::vector<int64_t>{0, 0, 1, 0}));
  const Values test{make_bool(true), make_bool(false)};
  EXPECT_EQ(ints(infer_values(where(any_arg(), any_arg(), any_arg()),
                              {tensor(Shape{2, 1}, DataType::bool_()), row, column}, {test, one, ten})),
            (std::vector<int64_t>{1, 2, 20, 20}));
}

// Tests short and long rows in which one, both or neither operand is contiguous, some longer than one block.
TEST_F(BroadcastTest, RowsOfAnyLength) {
  struct Shapes {
    Shape a, b, out;
    Shape of_a, of_b;  // strides by hand
  };
  const std::vector<Shapes> cases{{{3, 1, 300}, {1, 7, 300}, {3, 7, 300}, {300, 0, 1}, {0, 300, 1}},
                                  {{5, 33}, {5, 1}, {5, 33}, {33, 1}, {1, 0}},
                                  {{3}, {300, 3}, {300, 3}, {0, 1}, {3, 1}},
                                  {{1, 600}, {2, 1}, {2, 600}, {0, 1}, {1, 0}},
                                  {{40, 31}, {31}, {40, 31}, {31, 1}, {0, 1}},
                                  {{}, {517}, {517}, {0}, {1}},
                                  {{2, 0}, {2, 1}, {2, 0}, {0, 1}, {1, 0}}};
  for (const Shapes& c : cases) {
    for (const DataType dtype : {DataType::float_(32), DataType::float_(16), DataType::int_(16)}) {
      SCOPED_TRACE(fmt::format("{} and {} of {}", fmt::join(c.a, "x"), fmt::join(c.b, "x"), dtype));
      const NDArray a = NDArray::empty(c.a, dtype), b = NDArray::empty(c.b, dtype);
      for (int64_t i = 0; i < a.num_elements(); ++i) set_element(a.tensor(), i, static_cast<double>(i % 50));
      for (int64_t i = 0; i < b.num_elements(); ++i) set_element(b.tensor(), i, static_cast<double>(i % 31));
      const NDArray out = evaluate(binary("subtract", any_arg(), any_arg()), {a, b})[0];
      const NDArray less = evaluate(binary("less", any_arg(), any_arg()), {a, b})[0];
      ASSERT_EQ(out.shape(), c.out);
      for (int64_t i = 0; i < out.num_elements(); ++i) {
        int64_t left = i, at_a = 0, at_b = 0;
        for (size_t axis = c.out.size(); axis-- > 0; left /= c.out[axis]) {
          at_a += left % c.out[axis] * c.of_a[axis];
          at_b += left % c.out[axis] * c.of_b[axis];
        }
        const int64_t x = at_a % 50, y = at_b % 31;
        ASSERT_EQ(element_as_double(out.tensor(), i), static_cast<double>(x - y)) << i;
        ASSERT_EQ(element_as_int(less.tensor(), i), x < y ? 1 : 0) << i;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::ops::testing
