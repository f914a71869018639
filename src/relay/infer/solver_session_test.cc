#include "relay/infer/solver_session.h"

#include <gtest/gtest.h>

#include "kit/errors.h"
#include "ops/all_ops.h"

namespace headrace::relay {
namespace {

TensorType floats(const Shape& shape) { return make_tensor_type(shape); }

class SolverSessions : public ::testing::Test {
 protected:
  void SetUp() override { ops::register_all_ops(); }
  Op add_op() const { return get_op("add"); }
  std::string text(const Type& type) { return to_string(session.resolve(type)); }
  static void expect_error(const std::function<void()>& call, std::string_view part) {
    const std::string message = kit::user_error_of(call);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  SolverSession session;
};

TEST_F(SolverSessions, RelationsAreChainedInAnyOrder) {
  const Type first = make_incomplete_type(), same = make_incomplete_type(), last = make_incomplete_type();
  session.add(add_op(), {same, floats({4, 1, 1}), last});
  session.add({}, {first, same});
  session.add(add_op(), {floats({2, 3}), floats({2, 1}), first});
  EXPECT_TRUE(session.solve());
  EXPECT_EQ(text(first), "Tensor[(2, 3), float32]");
  EXPECT_EQ(text(last), "Tensor[(4, 2, 3), float32]");
}

TEST_F(SolverSessions, TheIdentityFindsItsInput) {
  const Type input = make_incomplete_type(), sum = make_incomplete_type();
  session.add(add_op(), {floats({2, 3}), input, sum});
  EXPECT_FALSE(session.solve());
  EXPECT_EQ(text(sum), "_");
  session.add({}, {input, floats({4, 1, 1})});
  EXPECT_TRUE(session.solve());
  EXPECT_EQ(text(sum), "Tensor[(4, 2, 3), float32]");
}

TEST_F(SolverSessions, PartsThatAreSettledLaterReachWholeTypes) {
  const Type a = make_incomplete_type(), b = make_incomplete_type(), whole = make_incomplete_type();
  session.add({}, {make_tuple_type({a, b}), whole});
  EXPECT_TRUE(session.solve());
  session.add({}, {a, floats({2})});
  session.add({}, {b, floats({3})});
  EXPECT_TRUE(session.solve());
  EXPECT_EQ(text(whole), "(Tensor[(2), float32], Tensor[(3), float32])");
}

TEST_F(SolverSessions, UnifiesNestedTypes) {
  const Type a = make_incomplete_type(), b = make_incomplete_type();
  const Type left = make_func_type({make_tuple_type({a, b}), b}, b);
  const Type right = make_func_type({make_tuple_type({floats({2}), floats({3})}), floats({3})}, floats({3}));
  EXPECT_EQ(to_string(session.unify(left, right)), to_string(right));
  EXPECT_EQ(text(a), "Tensor[(2), float32]");
}

TEST_F(SolverSessions, AMoreGeneralFunctionStandsForAnother) {
  const TypeVar a = make_type_var("A"), b = make_type_var("B");
  const Type general = make_func_type({a}, b, {a, b});
  const Type special = make_func_type({a}, a, {a});
  EXPECT_EQ(to_string(session.unify(general, special)), "fn [A](A) -> A");
  EXPECT_EQ(to_string(session.unify(special, general)), "fn [A](A) -> A");
}

TEST_F(SolverSessions, TypesThatDifferAreErrors) {
  const Type a = make_incomplete_type();
  expect_error([&] { session.unify(make_tuple_type({a, a}), make_tuple_type({floats({1}), floats({2})})); },
               "does not match (Tensor[(1), float32], Tensor[(2), float32])");
  const Type b = make_incomplete_type();
  expect_error([&] { session.unify(b, make_tuple_type({b, b})); }, "the type would be infinite");
  expect_error([&] { session.unify(make_global_type_var("X"), make_global_type_var("Y")); },
               "the type X does not match Y");
  session.add({}, {floats({1}), floats({2})});
  expect_error([&] { session.solve(); }, "the type Tensor[(1), float32] does not match Tensor[(2), float32]");
}

TEST_F(SolverSessions, ConstraintsThatRelateNothingAreErrors) {
  expect_error([&] { session.add({}, {floats({1})}); }, "a constraint relates inputs and a result, got 1 type");
  expect_error([&] { session.add(add_op(), {floats({1}), floats({1})}); },
               "the relation of add is between 2 inputs and a result, got 2 types");
  static const Op bare = register_op("test.session_no_relation");
  expect_error([&] { session.add(bare, {floats({1}), floats({1})}); },
               "the op test.session_no_relation has no type relation");
}

}  // namespace
}  // namespace headrace::relay
