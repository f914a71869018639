// Ops whose results are as many as the data says, in the interpreter; their bounded forms are among the op cases.
#include "ops/algorithm/select.h"

#include "interp/interp.h"
#include "ops/tests/op_testing.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::ops::testing {
namespace {

using SelectTest = OpTest;

relay::Function parse_select(std::string_view text) {
  return relay::infer_type(relay::parse_expr(std::string(text))).cast<relay::FunctionNode>();
}

TEST_F(SelectTest, ArgwhereHasASizeThatTheTypeDoesNotTell) {
  const relay::Function function = parse_select("fn (%x: Tensor[(2, 3), float32]) { argwhere(%x) }");
  EXPECT_EQ(to_string(function->body->checked_type()), "Tensor[(?, 2), int32]");
  const NDArray x = make_array({2, 3}, {0, 1, 0, -2, 0, 3});
  const std::vector<NDArray> got = interp::run_main(make_module(function), {x});
  ASSERT_EQ(got[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(to_doubles(got[0]), (std::vector<double>{0, 1, 1, 0, 1, 2}));
  const NDArray none = interp::run_main(make_module(function), {make_array({2, 3}, {0, 0, 0, 0, 0, 0})})[0];
  EXPECT_EQ(none.shape(), (Shape{0, 2}));
}

// Ops that read the result see its actual size.
TEST_F(SelectTest, OpsBehindArgwhereSeeItsActualSize) {
  const relay::Function function = parse_select(
      "fn (%x: Tensor[(5), int32]) { "
      "let %where = squeeze(argwhere(%x), axis=[1]); (take(%x, %where, axis=0), shape_of(%where)) }");
  const std::vector<NDArray> got =
      interp::run_main(make_module(function), {make_array({5}, {4, 0, 0, -7, 2}, DataType::int_(32))});
  EXPECT_EQ(to_doubles(got[0]), (std::vector<double>{4, -7, 2}));
  EXPECT_EQ(to_doubles(got[1]), (std::vector<double>{3}));
}

// The bounded form, cut to its count, is the other form.
TEST_F(SelectTest, TheBoundedFormIsCutToItsCount) {
  const relay::Function function = parse_select(
      "fn (%x: Tensor[(4), bool], %begin: Tensor[(1), int32], %step: Tensor[(1), int32]) { "
      "let %found = argwhere_bounded(%x); strided_slice(%found.0, %begin, %found.1, %step) }");
  EXPECT_EQ(to_string(function->body->checked_type()), "Tensor[(?, 1), int32]");
  const auto ints = [](const Shape& shape, const std::vector<double>& data, DataType dtype = DataType::int_(32)) {
    return make_array(shape, data, dtype);
  };
  const std::vector<NDArray> got = interp::run_main(
      make_module(function), {ints({4}, {0, 1, 0, 1}, DataType::bool_()), ints({1}, {0}), ints({1}, {1})});
  ASSERT_EQ(got[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(to_doubles(got[0]), (std::vector<double>{1, 3}));
}

TEST_F(SelectTest, ArgwhereTakesOneTensor) {
  try {
    parse_select("fn (%x: Tensor[(4), bool]) { argwhere(%x, %x) }");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("argwhere"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("takes 1 argument"));
  }
}

}  // namespace
}  // namespace headrace::ops::testing
