#include "relay/bind.h"

#include <gtest/gtest.h>

#include "object/structural_equal.h"
#include "kit/errors.h"

namespace headrace::relay {
namespace {

class Bind : public testing::Test {
 protected:
  static Map<Var, Expr> to(const Var& var, const Expr& value) { return {{var, value}}; }
  static Expr tuple(std::initializer_list<Expr> fields) { return make_tuple(Array<Expr>(fields)); }
  static NDArray zeros(const Shape& shape, DataType dtype = DataType::float_(32)) {
    return NDArray::zeros(shape, dtype);
  }

  const Type line = make_tensor_type(Shape{2});
  const Var x = make_var("x", line), y = make_var("y", line), z = make_var("z", line), other_ = make_var("w", line);
};

TEST_F(Bind, FreeVariablesAndParametersAreReplaced) {
  EXPECT_TRUE(structural_equal(bind(tuple({x, y}), to(x, y)), tuple({y, y})));
  const Expr bound = bind(make_function({x, y}, tuple({x, y})), to(x, y));
  EXPECT_TRUE(structural_equal(bound, make_function({y}, tuple({y, y}))));
  const Expr expr = tuple({y});
  EXPECT_EQ(bind(expr, to(x, y)), expr) << "nothing to replace";
}

TEST_F(Bind, BoundValuesAreShared) {
  const Expr pair = tuple({y, y});
  const Expr bound = bind(tuple({x, tuple({x})}), to(x, pair));
  const auto* outer = bound.as<TupleNode>();
  EXPECT_EQ(outer->items[0], pair);
  EXPECT_EQ(outer->items[1].as<TupleNode>()->items[0], pair);
}

TEST_F(Bind, AnInnerBinderOfTheSameVariableIsNotMeant) {
  const Expr inner = make_function({x}, x);
  const Expr bound = bind(tuple({x, inner}), to(x, y));
  EXPECT_TRUE(structural_equal(bound, tuple({y, inner})));
  const Expr function = bind(make_function({x}, tuple({x, make_let(x, y, x)})), to(x, y));
  EXPECT_TRUE(structural_equal(function, make_function({}, tuple({y, make_let(x, y, x)}))));
  const Expr let = make_let(x, z, tuple({x, y}));
  EXPECT_TRUE(structural_equal(bind(let, to(x, y)), let)) << "x is not free";
  EXPECT_TRUE(structural_equal(bind(make_function({y}, inner), to(x, y)), make_function({y}, inner)));
}

TEST_F(Bind, ABinderTakesNoVariableOfAValue) {
  const Expr let = bind(make_let(x, z, tuple({x, y})), to(y, x));
  const Var other = make_var("other", line);
  EXPECT_TRUE(structural_equal(let, make_let(other, z, tuple({other, x}))));
  const Expr partial = bind(make_function({y}, make_function({x}, tuple({x, y}))), to(y, x));
  EXPECT_TRUE(structural_equal(partial, make_function({x}, make_function({other}, tuple({other, x})))));
}

TEST_F(Bind, VariablesThatValuesBringBecomeParameters) {
  const Expr bound = bind(make_function({x, y}, tuple({x, y, z})), to(x, tuple({other_})));
  EXPECT_TRUE(structural_equal(bound, make_function({y, other_}, tuple({tuple({other_}), y, z}))));
}

TEST_F(Bind, ParametersByNameBecomeConstants) {
  const Function function = make_function({x, y}, tuple({x, y}));
  const Function bound = bind_params_by_name(function, {{"y", zeros({2})}, {"other", zeros({5})}});
  ASSERT_EQ(bound->params.size(), 1u);
  EXPECT_EQ(bound->params[0], x);
  const auto* constant = bound->body.as<TupleNode>()->items[1].as<ConstantNode>();
  ASSERT_NE(constant, nullptr);
  EXPECT_EQ(constant->data.shape(), Shape{2});
  EXPECT_EQ(bind_params_by_name(function, {{"other", zeros({5})}}), function);
}

TEST_F(Bind, ATensorOfAnotherTypeIsAnError) {
  const Function function = make_function({x}, x);
  EXPECT_EQ(kit::user_error_of([&] { bind_params_by_name(function, {{"x", zeros({3})}}); }),
            "parameter 'x' is Tensor[(2), float32]; the tensor given for it is Tensor[(3), float32]");
  EXPECT_EQ(kit::user_error_of([&] { bind_params_by_name(function, {{"x", zeros({2}, DataType::float_(64))}}); }),
            "parameter 'x' is Tensor[(2), float32]; the tensor given for it is Tensor[(2), float64]");
  const Var any = make_var("x", make_tensor_type(Array<PrimExpr>{make_any()}, DataType::float_(32)));
  EXPECT_TRUE(bind_params_by_name(make_function({any}, any), {{"x", zeros({3})}})->params.empty());
}

TEST_F(Bind, ANameOfTwoParametersIsAnError) {
  const Function function = make_function({x, make_var("x", line)}, x);
  EXPECT_EQ(kit::user_error_of([&] { bind_params_by_name(function, {{"x", zeros({2})}}); }),
            "two parameters are named 'x', so that the tensor may be for either; rename one of them");
}

}  // namespace
}  // namespace headrace::relay
