#include "relay/infer/growing_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "relay/op_keys.h"

namespace headrace::relay {
namespace {

int calls_of_relation = 0;

// Ops of this test alone: plus(a, b) of equal types, shape(x).
void register_growing_ops() {
  static const bool done = [] {
    Op plus = register_op("test.growing.plus");
    plus->num_inputs = 2;
    plus->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                ++calls_of_relation;
                if (to_string(input.arg_types[0]) != to_string(input.arg_types[1])) input.fail("types differ");
                return input.tensor(0);
              }));
    Op shape = register_op("test.growing.shape");
    shape->num_inputs = 1;
    shape->set(kTypeRelation, TypeRelationFn([](const RelationInput& input) -> Type {
                 return make_tensor_type(Shape{static_cast<int64_t>(input.tensor(0)->shape.size())}, kIndexType);
               }));
    shape->set(kValueInference,
               ValueInferenceFn([](const RelationInput& input) -> std::optional<std::vector<PrimExpr>> {
                 return input.tensor(0)->shape.to_vector();
               }));
    return true;
  }();
  static_cast<void>(done);
}

class GrowingInferenceTest : public ::testing::Test {
 protected:
  GrowingInferenceTest() { register_growing_ops(); }
  GrowingInference inference_;
};

Expr input(std::string name, Array<PrimExpr> shape) { return make_var(std::move(name), make_tensor_type(shape)); }
Expr plus(Expr a, Expr b) { return make_call("test.growing.plus", {std::move(a), std::move(b)}); }

TEST_F(GrowingInferenceTest, AsksOnlyForWhatIsNew) {
  const Expr x = input("x", {make_int(2), make_int(3)});
  calls_of_relation = 0;
  const Expr sum = inference_.infer(plus(x, x));
  EXPECT_EQ(to_string(sum->checked_type()), "Tensor[(2, 3), float32]");
  const Type first = sum->checked_type();
  const Expr more = inference_.infer(plus(sum, x));
  EXPECT_EQ(to_string(more->checked_type()), "Tensor[(2, 3), float32]");
  EXPECT_EQ(sum->checked_type(), first);
  EXPECT_EQ(calls_of_relation, 2);
}

TEST_F(GrowingInferenceTest, FollowsShapesAsValues) {
  const PrimVar n = make_prim_var("n");
  const Expr shape = inference_.infer(make_call("test.growing.shape", {input("x", {n, make_int(3)})}));
  const auto value = inference_.value_of(shape);
  ASSERT_TRUE(value.has_value());
  ASSERT_EQ(value->size(), 2U);
  EXPECT_EQ((*value)[0], PrimExpr(n));
  EXPECT_EQ(as_int((*value)[1]), 3);
}

TEST_F(GrowingInferenceTest, AnUntypedValueLeavesItsUsersUntyped) {
  const Expr x = input("x", {make_int(2)}), y = input("y", {make_int(3)});
  const Expr wrong = plus(x, y);
  EXPECT_THAT(kit::user_error_of([&] { inference_.infer(wrong); }), testing::HasSubstr("types differ"));
  EXPECT_THAT(kit::user_error_of([&] { inference_.infer(plus(wrong, x)); }), testing::HasSubstr("has no type"));
  EXPECT_EQ(to_string(inference_.infer(plus(x, x))->checked_type()), "Tensor[(2), float32]");
}

}  // namespace
}  // namespace headrace::relay
