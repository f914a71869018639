#include "relay/growing_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "ops/all_ops.h"
#include "ops/broadcast.h"
#include "ops/creation.h"
#include "ops/slice.h"

namespace headrace::relay {
namespace {

class GrowingInferenceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ops::register_all_ops(); }
};

Expr input(std::string name, Array<PrimExpr> shape) { return make_var(std::move(name), make_tensor_type(shape)); }

TEST_F(GrowingInferenceTest, TypesWhatIsNewAndKeepsWhatWasTyped) {
  GrowingInference inference;
  const Expr x = input("x", {make_int(2), make_int(3)});
  const Expr sum = inference.infer(ops::add(x, x));
  EXPECT_EQ(to_string(sum->checked_type()), "Tensor[(2, 3), float32]");
  const Type first = sum->checked_type();
  const Expr product = inference.infer(ops::multiply(sum, x));
  EXPECT_EQ(to_string(product->checked_type()), "Tensor[(2, 3), float32]");
  EXPECT_EQ(sum->checked_type(), first);
}

TEST_F(GrowingInferenceTest, FollowsShapesAsValues) {
  GrowingInference inference;
  const PrimVar n = make_prim_var("n");
  const Expr shape = inference.infer(ops::shape_of(input("x", {n, make_int(3)})));
  const Expr first = inference.infer(ops::take(shape, make_scalar(0, DataType::int_(64)), 0));
  const auto value = inference.value_of(first);
  ASSERT_TRUE(value.has_value());
  ASSERT_EQ(value->size(), 1U);
  EXPECT_EQ((*value)[0], PrimExpr(n));
}

TEST_F(GrowingInferenceTest, AnErrorIsRaisedOnceAndItsUsersHaveNoType) {
  GrowingInference inference;
  const Expr x = input("x", {make_int(2)}), y = input("y", {make_int(3)});
  const Expr wrong = ops::add(x, y);
  EXPECT_THAT(kit::user_error_of([&] { inference.infer(wrong); }), testing::HasSubstr("add"));
  EXPECT_THAT(kit::user_error_of([&] { inference.infer(ops::add(wrong, x)); }), testing::HasSubstr("no type"));
  EXPECT_EQ(to_string(inference.infer(ops::add(x, x))->checked_type()), "Tensor[(2), float32]");
}

}  // namespace
}  // namespace headrace::relay
