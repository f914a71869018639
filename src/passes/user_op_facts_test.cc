// Facts of users' ops (ops/op_facts.h): the passes that ask for one find it on an op that a user registered.
#include <gmock/gmock.h>

#include <mutex>

#include "cost/op_work.h"
#include "kit/errors.h"
#include "kit/relay_programs.h"
#include "lower/user_ops/tests/unary_op.h"
#include "ops/loops/element.h"
#include "ops/op_handles.h"
#include "passes/layout/convert_layout.h"
#include "passes/tests/bounds_testing.h"
#include "relay/match.h"
#include "relay/op_keys.h"

namespace headrace::passes {
namespace {

using lower::ComputeRuleFn;
using lower::UserOp;
using ops::CommutingFactors;
using relay::CallNode;

lower::UserOp fact_op(const std::string& name) {
  UserOp op = lower::unary(name);
  op.compute = ComputeRuleFn(lower::copy_form);
  return op;
}

UserOp factors_op(const std::string& name, CommutingFactors factors) {
  UserOp op = fact_op(name);
  op.facts.commuting_factors = [factors](const CallNode&, std::optional<size_t>) { return factors; };
  return op;
}

// The rows of x[n, 2] that are not zero in their first element, and a buffer of n rows with how many of them count.
UserOp picked_rows() {
  UserOp op = lower::unary("facts.rows");
  op.relation = [](const relay::RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    return data ? Type(make_tensor_type({make_any(), data->shape[1]}, data->dtype)) : Type();
  };
  op.eval = [](const ops::EvalInput& input) {
    const auto* x = input.args[0].data<float>();
    std::vector<float> rows;
    for (int64_t i = 0; i < input.args[0].shape()[0]; ++i) {
      if (x[2 * i] != 0) rows.insert(rows.end(), {x[2 * i], x[2 * i + 1]});
    }
    return std::vector{NDArray::from_vector({static_cast<int64_t>(rows.size() / 2), 2}, DataType::float_(32), rows)};
  };
  op.facts.bounded_form = [](const CallNode& call) -> Expr {
    return lower::make_user_call("facts.rows_bounded", {call.args[0]});
  };
  return op;
}

UserOp picked_rows_in_a_buffer() {
  UserOp op = lower::unary("facts.rows_bounded");
  op.relation = [](const relay::RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    return data ? Type(make_tuple_type({data, make_tensor_type({make_int(1)}, DataType::int_(64))})) : Type();
  };
  op.eval = [](const ops::EvalInput& input) {
    const NDArray rows = input.make_output(0), count = input.make_output(1);
    const auto* x = input.args[0].data<float>();
    int64_t found = 0;
    for (int64_t i = 0; i < input.args[0].shape()[0]; ++i) {
      if (x[2 * i] == 0) continue;
      rows.data<float>()[2 * found] = x[2 * i];
      rows.data<float>()[2 * found + 1] = x[2 * i + 1];
      ++found;
    }
    for (int64_t i = 2 * found; i < rows.num_elements(); ++i) rows.data<float>()[i] = -1;
    count.data<int64_t>()[0] = found;
    return std::vector{rows, count};
  };
  return op;
}

// The sum of each row, as one column: what no pass can know of an op that has an evaluation alone.
UserOp row_sums(const std::string& name) {
  UserOp op = lower::unary(name);
  op.relation = [](const relay::RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    return data ? Type(make_tensor_type({data->shape[0], make_int(1)}, data->dtype)) : Type();
  };
  op.eval = [](const ops::EvalInput& input) {
    const NDArray out = input.make_output();
    const auto* x = input.args[0].data<float>();
    for (int64_t i = 0; i < out.num_elements(); ++i) out.data<float>()[i] = x[2 * i] + x[2 * i + 1];
    return std::vector{out};
  };
  return op;
}

UserOp flat_op(const std::string& name, std::optional<ops::KeepsElements> keeps) {
  UserOp op = lower::unary(name);
  op.relation = [](const relay::RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    if (!data) return {};
    PrimExpr count = make_int(1);
    for (const PrimExpr& dim : data->shape) count = count * dim;
    return make_tensor_type({count}, data->dtype);
  };
  op.eval = [](const ops::EvalInput& input) {
    const NDArray out = input.make_output();
    std::memcpy(out.data<float>(), input.args[0].data<float>(), input.args[0].size_bytes());
    return std::vector{out};
  };
  op.facts.keeps_elements = keeps;
  return op;
}

void register_fact_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_user_op(fact_op("facts.plain"));
    register_user_op(factors_op("facts.linear", CommutingFactors::any));
    register_user_op(factors_op("facts.positive", CommutingFactors::positive));
    UserOp effect = factors_op("facts.effect", CommutingFactors::any);
    effect.is_stateful = true;
    register_user_op(effect);
    register_user_op(picked_rows_in_a_buffer());
    register_user_op(picked_rows());
    register_user_op(row_sums("facts.sums"));
    UserOp apart = row_sums("facts.sums_apart");
    apart.facts.treats_apart = [](const CallNode&, const ops::UnknownAxis& where) {
      return where.axis == 0 && where.result_axis == 0;
    };
    register_user_op(apart);
    register_user_op(flat_op("facts.flat", std::nullopt));
    register_user_op(flat_op("facts.flat_view", ops::KeepsElements::view));
    UserOp along = fact_op("facts.along");
    along.attrs = {{"axis", relay::AttrKind::integer, Value(1)}, {"count", relay::AttrKind::integer, Value(1)}};
    register_user_op(along);
    lower::set_user_facts(get_op("facts.along"),
                          {.keep_layout = lower::keep_layout_with(*get_op("facts.along"), {"axis"})});
  });
}

IRModule read_facts(const std::string& params, const std::string& body) {
  register_fact_ops();
  return read(fmt::format("def @main({}) {{ {} }}", params, body));
}

const std::string kFactImage = "%x: Tensor[(2, 4, 5, 5), float32], %w: Tensor[(4, 4, 3, 3), float32]";
#define FACTS_POSITIVE "const(Tensor[(4, 1, 1), float32], [2, 3, 0.5, 4])"
#define FACTS_NEGATIVE "const(Tensor[(4, 1, 1), float32], [2, -3, 0.5, 4])"

void expect_folds(const std::string& pass, const std::string& body, bool folds) {
  SCOPED_TRACE(body);
  const IRModule before = read_facts(kFactImage, body), after = run_pass(pass, before);
  ASSERT_EQ(count_calls(before, "multiply"), 1);
  // The multiplication is of the weights then.
  const Expr conv = folds ? main_of(after).body : Expr();
  EXPECT_EQ(relay::print_module(after) != relay::print_module(before), folds);
  if (!folds) return;
  bool scales_weights = false;
  relay::post_order(conv, [&](const Expr& e) {
    const auto* product = relay::call_of(e, op::kMultiply);
    scales_weights = scales_weights || (product != nullptr && product->args[0] == main_of(after).params[1]);
  });
  EXPECT_TRUE(scales_weights) << relay::print_module(after);
  kit::Random random(3);
  expect_same_results(before, after, kit::random_inputs(before, random), 1e-4);
}

TEST(UserOpFacts, ScalesGoForwardThroughOpsThatCommute) {
  for (const auto& [op, factors, folds] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"facts.linear", FACTS_NEGATIVE, true},
                                                               {"facts.positive", FACTS_POSITIVE, true},
                                                               {"facts.positive", FACTS_NEGATIVE, false},
                                                               {"facts.plain", FACTS_POSITIVE, false},
                                                               {"facts.effect", FACTS_POSITIVE, false}})
    expect_folds("ForwardFoldScaleAxis", fmt::format("nn.conv2d({}(multiply(%x, {})), %w)", op, factors), folds);
}

TEST(UserOpFacts, ScalesGoBackwardThroughOpsThatCommute) {
  for (const auto& [op, factors, folds] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"facts.linear", FACTS_NEGATIVE, true},
                                                               {"facts.positive", FACTS_POSITIVE, true},
                                                               {"facts.positive", FACTS_NEGATIVE, false},
                                                               {"facts.plain", FACTS_POSITIVE, false},
                                                               {"facts.effect", FACTS_POSITIVE, false}})
    expect_folds("BackwardFoldScaleAxis", fmt::format("multiply({}(nn.conv2d(%x, %w)), {})", op, factors), folds);
}

TEST(UserOpFacts, CostsAskForTheWork) {
  UserOp op = fact_op("facts.work");
  op.facts.work = [](const CallNode& call) {
    return ops::Work{.operations = 100 * ops::elements_of(call.checked_type()),
                     .kernel = ops::KernelKind::depthwise_conv};
  };
  register_user_op(op);
  const std::string image = "%x: Tensor[(2, 3), float32]";
  const IRModule plain = read_facts(image, "facts.plain(%x)"), work = read_facts(image, "facts.work(%x)");
  const auto call_of = [](const IRModule& module) -> const CallNode& { return *main_of(module).body.as<CallNode>(); };
  EXPECT_EQ(cost::work_of(call_of(plain)).operations, 6);
  EXPECT_EQ(cost::work_of(call_of(work)).operations, 600);
  const cost::Machine machine{.l2_gigabytes = 1e9, .l3_gigabytes = 1e9, .depthwise_share = 0.5};
  const double peak = cost::peak_gigaops(machine, DataType::float_(32)) * 1e9;
  EXPECT_DOUBLE_EQ(cost::native_seconds(call_of(work), machine, 1), 600 / peak / 0.5);
}

TEST(UserOpFacts, ABoundedFormAndWhatFollowsIt) {
  for (const std::string body : {"facts.rows(%x)", "facts.sums_apart(facts.rows(%x))", "exp(facts.rows(%x))"}) {
    SCOPED_TRACE(body);
    const IRModule before = read_facts("%x: Tensor[(3, 2), float32]", body);
    const IRModule after = run_pass("BoundOutputs", before);
    ASSERT_FALSE(bounded_outputs_of(main_of(after)).empty()) << relay::print_module(after);
    EXPECT_EQ(count_calls(after, "facts.rows"), 0);
    EXPECT_EQ(count_calls(after, "facts.rows_bounded"), 1);
    for (const std::vector<float>& rows : {std::vector<float>{1, 2, 0, 3, 4, 5}, {0, 1, 0, 2, 0, 3}}) {
      const std::vector<NDArray> args{NDArray::from_vector({3, 2}, DataType::float_(32), rows)};
      const std::vector<NDArray> want = interp::run_main(before, args), all = interp::run_main(after, args);
      EXPECT_TRUE(want[0].content_equal(cut_outputs(main_of(after), all, 1)[0]));
    }
  }
}

TEST(UserOpFacts, AnOpThatDoesNotSayThatItTreatsIndicesApartStays) {
  const IRModule module = read_facts("%x: Tensor[(3, 2), float32]", "facts.sums(facts.rows(%x))");
  EXPECT_EQ(run_pass("BoundOutputs", module), module);
}

TEST(UserOpFacts, ABoundedFormOfAnotherTypeIsRefused) {
  register_fact_ops();
  UserOp wrong = picked_rows();
  wrong.name = "facts.wrong_rows";
  wrong.facts.bounded_form = [](const CallNode& call) -> Expr {
    return relay::make_tuple({call.args[0], call.args[0]});
  };
  register_user_op(wrong);
  const IRModule module = read_facts("%x: Tensor[(3, 2), float32]", "facts.wrong_rows(%x)");
  EXPECT_THAT(kit::user_error_of([&] { run_pass("BoundOutputs", module); }),
              testing::HasSubstr("facts.wrong_rows: its bounded form gives (Tensor[(3, 2), float32], Tensor[(3, 2), "
                                 "float32]); for Tensor[(?, 2), float32] it gives a tuple of a tensor"));
}

TEST(UserOpFacts, ViewsAreLeftAloneByFusionAndJoinedByLaws) {
  const std::string x = "%x: Tensor[(2, 3), float32]";
  const IRModule fused = run_pass("FuseOps", read_facts(x, "exp(facts.flat_view(exp(%x)))"));
  int groups = 0;
  relay::post_order(main_of(fused).body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    groups += call != nullptr && call->op.is<relay::FunctionNode>() ? 1 : 0;
  });
  EXPECT_EQ(groups, 3) << relay::print_module(fused);
  const auto simplified = [&](const std::string& body) { return run_pass("SimplifyExpr", read_facts(x, body)); };
  EXPECT_EQ(count_calls(simplified("reshape(facts.flat_view(%x), newshape=[3, 2])"), "facts.flat_view"), 0);
  EXPECT_EQ(count_calls(simplified("facts.flat_view(facts.flat_view(%x))"), "facts.flat_view"), 1);
  EXPECT_EQ(count_calls(simplified("reshape(facts.flat(%x), newshape=[3, 2])"), "facts.flat"), 1);
}

TEST(UserOpFacts, AViewOfAnotherNumberOfElementsIsRefused) {
  register_fact_ops();
  UserOp wrong = row_sums("facts.wrong_view");
  wrong.facts.keeps_elements = ops::KeepsElements::view;
  register_user_op(wrong);
  EXPECT_THAT(
      kit::user_error_of([] { read_facts("%x: Tensor[(3, 2), float32]", "facts.wrong_view(%x)"); }),
      testing::HasSubstr("it is registered as an op that keeps the elements of its first argument, Tensor[(3, 2), "
                         "float32], and gives Tensor[(3, 1), float32]"));
}

TEST(UserOpFacts, AViewHasNoEffect) {
  register_fact_ops();
  const auto refused = testing::HasSubstr(": an op that keeps its argument's elements has no effect");
  EXPECT_THAT(kit::user_error_of([] { lower::set_user_stateful(get_op("facts.flat_view"), true); }), refused);
  EXPECT_THAT(kit::user_error_of(
                  [] { lower::set_user_facts(get_op("facts.effect"), {.keeps_elements = ops::KeepsElements::view}); }),
              refused);
}

TEST(UserOpFacts, LayoutsAreKeptWithAxesRenumbered) {
  const IRModule before = read_facts(kFactImage, "facts.along(nn.conv2d(%x, %w), axis=1, count=7)");
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{"NHWC"});
  const IRModule after = relay::infer_type(convert_layout(before, desired));
  const auto* last = relay::call_of(main_of(after).body, op::kLayoutTransform);
  ASSERT_NE(last, nullptr) << relay::print_module(after);
  const auto* along = relay::op_call(last->args[0]);
  ASSERT_EQ(along->as_op(), get_op("facts.along").get());
  EXPECT_EQ(relay::user_attr(*along, "axis").as<int64_t>(), 3);
  EXPECT_EQ(relay::user_attr(*along, "count").as<int64_t>(), 7);
  kit::Random random(3);
  expect_same_results(before, after, kit::random_inputs(before, random), 1e-4);
}

TEST(UserOpFacts, AnAxisOutsideTheDataIsRefused) {
  const IRModule module = read_facts(kFactImage, "facts.along(nn.conv2d(%x, %w), axis=4)");
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{"NHWC"});
  EXPECT_THAT(
      kit::user_error_of([&] { convert_layout(module, desired); }),
      testing::HasSubstr("facts.along: axis is 4, which is not an axis of its first argument, of 4 dimensions"));
}

TEST(UserOpFacts, AnAxisIsAnAttributeOfTheOp) {
  register_fact_ops();
  EXPECT_EQ(kit::user_error_of([] { lower::keep_layout_with(*get_op("facts.along"), {"axes"}); }),
            "facts.along: 'axes' is not an attribute of kind int; add it before it is said to be an axis");
}

TEST(UserOpFacts, OpsOfHeadraceAreNotChanged) {
  register_fact_ops();
  EXPECT_THAT(kit::user_error_of([] { lower::set_user_facts(get_op("nn.dense"), {.repeats = ops::Repeats{}}); }),
              testing::HasSubstr("'nn.dense' is an op of Headrace, which is not changed"));
}

TEST(UserOpFacts, ResultsThatRepeatStayCallsWhenTheyAreLarge) {
  register_fact_ops();
  UserOp filled = lower::unary("facts.filled");
  filled.relation = [](const relay::RelationInput&) -> Type { return make_tensor_type(Shape{1 << 16}); };
  filled.eval = [](const ops::EvalInput& input) {
    const NDArray out = input.make_output();
    for (int64_t i = 0; i < out.num_elements(); ++i) out.data<float>()[i] = input.args[0].data<float>()[0];
    return std::vector{out};
  };
  register_user_op(filled);
  filled.name = "facts.filled_by_rule";
  filled.facts.repeats = ops::Repeats{};
  register_user_op(filled);
  const auto calls_left = [](const std::string& op) {
    return count_calls(run_pass("FoldConstant", read_facts("", op + "(1f)")), op);
  };
  EXPECT_EQ(calls_left("facts.filled"), 0);
  EXPECT_EQ(calls_left("facts.filled_by_rule"), 1);
}

}  // namespace
}  // namespace headrace::passes
