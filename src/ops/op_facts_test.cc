// Facts of the registered ops (ops/op_facts.h) against their evaluation, on the calls of op_cases.txt and a few more.
#include "ops/op_facts.h"

#include <gtest/gtest-spi.h>

#include "interp/interp.h"
#include "ops/tests/op_cases.h"
#include "ops/tests/op_testing.h"
#include "relay/bind.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::ops::testing {
namespace {

using OpFactsTest = OpTest;
using Axis = std::optional<size_t>;

// Calls whose factors commute, where op_cases.txt has none.
std::vector<OpCase> more_cases() {
  const NDArray image = make_array({1, 2, 2, 3}, {1, -2, 3, -4, 5, -6, 0.5, -0.25, 7, -8, 9, 2});
  return {{.name = "pad by zeros",
           .program = "fn (%x: Tensor[(1, 2, 2, 3), float32]) { nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], "
                      "[0, 1]]) }",
           .tolerance = 0,
           .inputs = {image},
           .outputs = {},
           .message = ""}};
}

// Returns the fact of an op that the function calls on its first parameter, a tensor of float32 or float64; else null.
const CommutingFactorsFn* fact_of(const relay::Function& function) {
  const auto* call = function->body.as<relay::CallNode>();
  if (call == nullptr || call->as_op() == nullptr || call->args.empty()) return nullptr;
  const auto* type = function->params[0]->checked_type().as<TensorTypeNode>();
  // Integers and float16 would overflow, and means of integers are truncated.
  if (type == nullptr || !type->dtype.is_float() || type->dtype.bits() < 32 ||
      !call->args[0].same_as(function->params[0]))
    return nullptr;
  return call->as_op()->find(kCommutingFactors);
}

// Returns the typed function of the first parameter alone: the others are constants, which a fact may look at.
relay::Function with_constants(const relay::Function& function, const std::vector<NDArray>& inputs) {
  Map<relay::Var, Expr> values;
  for (size_t k = 1; k < function->params.size(); ++k) values.set(function->params[k], relay::make_constant(inputs[k]));
  const Expr body = relay::bind(function->body, values);
  return relay::infer_type(relay::make_function({function->params[0]}, body)).cast<relay::FunctionNode>();
}

// Multiplies each element by the factor of its index along `axis`; without an axis all elements by the first factor.
NDArray scaled(const NDArray& array, const std::vector<double>& factors, Axis axis) {
  int64_t inner = 1;
  for (size_t k = axis ? *axis + 1 : 0; axis && k < array.shape().size(); ++k) inner *= array.shape()[k];
  const NDArray result = NDArray::empty(array.shape(), array.dtype());
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    const int64_t index = axis ? i / inner % array.shape()[*axis] : 0;
    const double factor = factors[static_cast<size_t>(index) % factors.size()];
    set_element(result.tensor(), i, element_as_double(array.tensor(), i) * factor);
  }
  return result;
}

// Holds op(x * s) against op(x) * s. The factors are powers of two, so that no product rounds.
void expect_factors_commute(const relay::Function& function, const NDArray& x, CommutingFactors factors, Axis axis) {
  const bool may_be_negative = factors == CommutingFactors::any;
  const std::vector<double> s =
      may_be_negative ? std::vector<double>{-0.5, 4, -1, 2} : std::vector<double>{4, 0.5, 1, 2};
  const IRModule module = make_module(function);
  const NDArray after = scaled(interp::run_main(module, {x}).at(0), s, axis);
  const NDArray before = interp::run_main(module, {scaled(x, s, axis)}).at(0);
  if (axis) {
    ASSERT_LT(*axis, after.shape().size());
    ASSERT_EQ(after.shape()[*axis], x.shape()[*axis]);
  }
  expect_near(before, after.shape(), to_doubles(after), 1e-6);
}

// Checks what the fact says of the call, for all elements and along each axis; returns whether any factors commute.
bool check_fact(const CommutingFactorsFn& fact, const relay::Function& function, const NDArray& x) {
  const auto* call = function->body.as<relay::CallNode>();
  bool commutes = false;
  for (size_t k = 0; k <= x.shape().size(); ++k) {
    const Axis axis = k == 0 ? Axis() : Axis(k - 1);
    const CommutingFactors factors = fact(*call, axis);
    if (factors == CommutingFactors::none) continue;
    SCOPED_TRACE(axis ? fmt::format("factors along axis {}", *axis) : "one factor");
    expect_factors_commute(function, x, factors, axis);
    commutes = true;
  }
  return commutes;
}

TEST_F(OpFactsTest, FactorsThatCommuteDoSoInTheEvaluation) {
  std::set<std::string> proven, stated;
  for (const std::string& op : op_names()) {
    if (find_op(op)->find(kCommutingFactors) != nullptr) stated.insert(op);
  }
  std::vector<OpCase> cases = read_op_cases();
  for (OpCase& one : more_cases()) cases.push_back(std::move(one));
  for (const OpCase& c : cases) {
    if (c.fails() || c.inputs.empty()) continue;
    SCOPED_TRACE(c.name + ": " + c.program);
    const auto parsed = relay::infer_type(relay::parse_expr(c.program)).cast<relay::FunctionNode>();
    const CommutingFactorsFn* fact = fact_of(parsed);
    if (fact == nullptr) continue;
    const relay::Function function = with_constants(parsed, c.inputs);
    if (check_fact(*fact, function, c.inputs[0])) proven.insert(function->body.as<relay::CallNode>()->as_op()->name);
  }
  EXPECT_EQ(proven, stated) << "an op with the fact needs a case of floats in which some factors commute";
}

// -1 does not commute with nn.relu, nor 2 with exp.
TEST_F(OpFactsTest, AWrongFactIsFound) {
  const auto num_failures = [](const std::string& op, CommutingFactors stated) {
    const auto function = relay::infer_type(relay::parse_expr("fn (%x: Tensor[(2), float32]) { " + op + "(%x) }"))
                              .cast<relay::FunctionNode>();
    ::testing::TestPartResultArray failures;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(&failures);
      check_fact([stated](const relay::CallNode&, Axis) { return stated; }, function, make_array({2}, {-1, 3}));
    }
    return failures.size();
  };
  EXPECT_EQ(num_failures("nn.relu", CommutingFactors::positive), 0);
  EXPECT_GT(num_failures("nn.relu", CommutingFactors::any), 0);
  EXPECT_GT(num_failures("exp", CommutingFactors::positive), 0);
}

}  // namespace
}  // namespace headrace::ops::testing
