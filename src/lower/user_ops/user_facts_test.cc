// Facts of users' ops in compiled programs: views, and results of a data-dependent size.
#include "lower/user_ops/user_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "load/run.h"
#include "lower/user_ops/tests/unary_op.h"
#include "relay/text/parse.h"

namespace headrace::lower {
namespace {

using relay::CallNode;
using relay::RelationInput;

// x[2, 3] as x[6].
UserOp flat_op_of_facts() {
  UserOp op = unary("ufacts.flat");
  op.relation = [](const RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    return data ? Type(make_tensor_type({data->shape[0] * data->shape[1]}, data->dtype)) : Type();
  };
  op.compute = ComputeRuleFn([](const RuleInput& input) {
    return single_stage(input, map_stage(input.make_output(), [&](const Index& i) {
                          return load(input.inputs[0], {floor_div(i[0], make_int(3)), floor_mod(i[0], make_int(3))});
                        }));
  });
  op.facts.keeps_elements = ops::KeepsElements::view;
  return op;
}

// The first rows of x[n, 2], as many as `count` says.
UserOp first_rows() {
  UserOp op = unary("ufacts.first");
  op.arguments.push_back({"count", "Tensor", ""});
  op.relation = [](const RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    return data ? Type(make_tensor_type({make_any(), data->shape[1]}, data->dtype)) : Type();
  };
  op.eval = [](const ops::EvalInput& input) {
    const auto count = element_as_int(input.args[1].tensor(), 0);
    const auto* x = input.args[0].data<float>();
    return std::vector{NDArray::from_vector({count, 2}, DataType::float_(32), std::vector<float>(x, x + 2 * count))};
  };
  op.facts.bounded_form = [](const CallNode& call) -> Expr { return relay::make_tuple({call.args[0], call.args[1]}); };
  return op;
}

// Each row of x[n, 2] with its elements exchanged.
UserOp exchanged(const std::string& name, bool says_so) {
  UserOp op = unary(name);
  op.compute = ComputeRuleFn([](const RuleInput& input) {
    return single_stage(input, map_stage(input.make_output(), [&](const Index& i) {
                          return load(input.inputs[0], {i[0], make_int(1) - i[1]});
                        }));
  });
  if (says_so) op.facts.treats_apart = [](const CallNode&, const ops::UnknownAxis& where) { return where.axis == 0; };
  return op;
}

driver::Model facts_model(const std::string& function) {
  static std::once_flag once;
  std::call_once(once, [] {
    register_user_op(flat_op_of_facts());
    register_user_op(first_rows());
    register_user_op(exchanged("ufacts.exchanged", true));
    register_user_op(exchanged("ufacts.silent", false));
  });
  return driver::make_model(relay::parse_module("#[version = \"0.0.5\"]\n" + function));
}

void expect_as_interpreted(const driver::Model& model, const std::vector<NDArray>& inputs) {
  const auto executor =
      load::make_executor(driver::open_compiled(driver::compile_to_memory(model), "test"), "default", {.threads = 1});
  const std::vector<NDArray> want = interp::run_main(model.module, inputs), got = load::run(*executor, inputs);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(want[i].shape(), got[i].shape());
    EXPECT_TRUE(want[i].content_equal(got[i])) << "output " << i;
  }
}

TEST(UserFacts, AViewIsComputedByNothing) {
  const driver::Model model =
      facts_model("def @main(%x: Tensor[(2, 3), float32]) { negative(ufacts.flat(nn.relu(%x))) }");
  expect_as_interpreted(model, {NDArray::from_vector<float>({2, 3}, DataType::float_(32), {1, -2, 3, -4, 5, 6})});
  const driver::CompiledModel compiled = driver::compile_to_memory(model);
  EXPECT_THAT(compiled.report.manifest.programs[0].graph.steps, testing::SizeIs(2));
}

TEST(UserFacts, AResultOfUnknownSizeIsCompiledByItsBoundedForm) {
  const NDArray x = NDArray::from_vector<float>({3, 2}, DataType::float_(32), {1, 2, 3, 4, 5, 6});
  for (const std::string body : {"ufacts.first(%x, %n)", "ufacts.exchanged(ufacts.first(%x, %n))",
                                 "nn.relu(ufacts.exchanged(negative(ufacts.first(%x, %n))))"}) {
    SCOPED_TRACE(body);
    const driver::Model model =
        facts_model(fmt::format("def @main(%x: Tensor[(3, 2), float32], %n: Tensor[(1), int64]) {{ {} }}", body));
    for (const int64_t count : {0, 1, 3})
      expect_as_interpreted(model, {x, NDArray::from_vector<int64_t>({1}, DataType::int_(64), {count})});
  }
}

TEST(UserFacts, AnOpThatDoesNotTreatIndicesApartIsRefused) {
  const driver::Model model = facts_model(
      "def @main(%x: Tensor[(3, 2), float32], %n: Tensor[(1), int64]) { ufacts.silent(ufacts.first(%x, %n)) }");
  EXPECT_THAT(kit::user_error_of([&] { driver::compile_to_memory(model); }),
              testing::HasSubstr("has a data-dependent size"));
}

}  // namespace
}  // namespace headrace::lower
