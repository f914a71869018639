// Helpers for tests of ops and of importers: they run the type relation, value inference or reference evaluation of one
// call to an op that has it. Included by tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "ops/op_keys.h"

namespace headrace::ops::testing {

using Values = std::vector<PrimExpr>;

// Returns the result type that a call's relation computes; null while the argument types do not determine it.
inline Type relate(const Expr& expr, const std::vector<Type>& arg_types) {
  const auto* call = expr.as<relay::CallNode>();
  const relay::RelationInput input{*call, arg_types, [](size_t) { return std::nullopt; },
                                   [](size_t) { return NDArray(); }};
  return (*call->as_op()->find(relay::kTypeRelation))(input);
}

inline std::string relate_text(const Expr& expr, const std::vector<Type>& arg_types) {
  const Type type = relate(expr, arg_types);
  return type ? to_string(type) : "unknown";
}

// Returns the message of the UserError that the relation throws; "no error" when it does not.
inline std::string relate_error(const Expr& expr, const std::vector<Type>& arg_types) {
  try {
    relate(expr, arg_types);
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

// Returns the result of value inference for these argument values.
inline std::optional<Values> infer_values(const Expr& expr, const std::vector<Type>& arg_types,
                                          const std::vector<std::optional<Values>>& values) {
  const auto* call = expr.as<relay::CallNode>();
  const relay::RelationInput input{*call, arg_types, [&](size_t i) { return values[i]; },
                                   [](size_t) { return NDArray(); }};
  return (*call->as_op()->find(relay::kValueInference))(input);
}

// Evaluates a call on tensors; its result types come from its relation.
inline std::vector<NDArray> evaluate(const Expr& expr, const std::vector<NDArray>& args) {
  const auto* call = expr.as<relay::CallNode>();
  std::vector<Type> types;
  EvalInput input{*call, args, {}, {}};
  for (const NDArray& arg : args) {
    input.arg_types.push_back(make_tensor_type(arg.shape(), arg.dtype()));
    types.push_back(input.arg_types.back());
  }
  const Type result = relate(expr, types);
  if (const auto* tuple = result.as<TupleTypeNode>()) {
    for (const Type& item : tuple->items) input.out_types.push_back(item.cast<TensorTypeNode>());
  } else {
    input.out_types.push_back(result.cast<TensorTypeNode>());
  }
  return (*call->as_op()->find(kEval))(input);
}

inline NDArray make_array(const Shape& shape, const std::vector<double>& data, DataType dtype = DataType::float_(32)) {
  const NDArray array = NDArray::empty(shape, dtype);
  EXPECT_EQ(static_cast<size_t>(array.num_elements()), data.size());
  for (size_t i = 0; i < data.size(); ++i) set_element(array.tensor(), static_cast<int64_t>(i), data[i]);
  return array;
}

inline std::vector<double> to_doubles(const NDArray& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.num_elements(); ++i) result.push_back(element_as_double(array.tensor(), i));
  return result;
}

// Expects |got - expected| <= tolerance * (1 + |expected|) for every element; NaN equals NaN.
inline void expect_near(const NDArray& got, const Shape& shape, const std::vector<double>& expected, double tolerance) {
  EXPECT_EQ(got.shape(), shape);
  const std::vector<double> values = to_doubles(got);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]))) continue;
    EXPECT_LE(std::abs(values[i] - expected[i]), tolerance * (1 + std::abs(expected[i])))
        << "element " << i << ": " << values[i] << ", expected " << expected[i];
  }
}

// Returns a free variable, for an argument whose type alone matters.
inline Expr any_arg() { return relay::make_var("x"); }

inline Type tensor(Array<PrimExpr> shape, DataType dtype = DataType::float_(32)) {
  return make_tensor_type(std::move(shape), dtype);
}
inline Type tensor(const Shape& shape, DataType dtype = DataType::float_(32)) { return make_tensor_type(shape, dtype); }

class OpTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_all_ops(); }
};

}  // namespace headrace::ops::testing
