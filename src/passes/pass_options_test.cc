// Tests options of passes, and op attributes that let users change what a pass does.
#include <mutex>
#include <set>

#include "kit/errors.h"
#include "kit/relay_programs.h"
#include "object/function.h"
#include "ops/tensor/reduce.h"
#include "pass/known_passes.h"
#include "passes/functions/remove_unused_functions.h"
#include "passes/fuse/fuse_ops.h"
#include "passes/gradient/gradient_rules.h"
#include "passes/nn/precision_lists.h"
#include "passes/nn/to_mixed_precision.h"
#include "ops/register.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// Something for each pass that has options.
constexpr const char* kEachOption =
    "def @callee(%x: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] { exp(%x) }\n"
    "def @unused(%x: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] { abs(%x) }\n"
    "def @main(%x: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
    "  let %once = negative(%x);\n"
    "  let %r = ref(%x);\n"
    "  let %_ = ref_write(%r, %w);\n"
    "  let %f = @callee;\n"
    "  let %a = on_device(tanh(%once), virtual_device=\"cpu:0\");\n"
    "  %0 = nn.dense(%x, %w); %1 = nn.dense(%x, exp(%w)); %2 = nn.dense(%x, abs(%w));\n"
    "  (%a, %f(%x), %0, %1, %2, nn.relu(negative(exp(%x))), cumsum(%x), concatenate((%x, %w, %x, %w)))\n}";

pass::PassContext with_option(const std::string& key, const Value& value) {
  pass::PassContext context = typed_context();
  context.config.set(key, value);
  return context;
}

std::string main_after(const std::string& pass, const std::string& text, const pass::PassContext& context) {
  return relay::print_expr(run_pass(pass, read(text), context)->lookup("main").as<relay::FunctionNode>()->body);
}

int64_t count_lets(const IRModule& module) {
  int64_t count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& e) { count += e.is<relay::LetNode>(); });
  return count;
}

// Used once: a chain; twice; in a function inside; read at another time; a value with an effect.
TEST(DeadCodeElimination, InlinesWhatIsUsedOnce) {
  const IRModule before = read(
      "def @main(%x: float32) -> (float32, float32, float32, float32) {\n"
      "  let %a = exp(%x);\n  let %b = negative(%a);\n  let %twice = abs(%b);\n  let %sum = add(%twice, %twice);\n"
      "  let %inside = sqrt(%x);\n  let %f = fn (%y: float32) -> float32 { add(%y, %inside) };\n"
      "  let %r = ref(%sum);\n  let %old = ref_read(%r);\n  let %_ = ref_write(%r, 2f);\n"
      "  (%f(1f), %f(2f), %old, ref_read(%r))\n}");
  EXPECT_EQ(count_lets(run_pass("DeadCodeElimination", before)), 9);
  const IRModule after =
      run_pass("DeadCodeElimination", before, with_option("relay.DeadCodeElimination.inline_once", Value(true)));
  EXPECT_EQ(count_lets(after), 6) << relay::print_module(after);  // %a, %b and %sum have become their values
  expect_same_results(before, after, {ramp({}, 2)}, 0);
}

// A function's own lets are as those around it; a value from outside stays there.
TEST(DeadCodeElimination, InlinesWhatIsUsedOnceInInnerFunctions) {
  const IRModule before = read(
      "def @main(%x: float32) -> (float32, float32) {\n"
      "  let %outside = exp(%x);\n"
      "  let %f = fn (%y: float32) -> float32 {\n"
      "    let %once = abs(%y);\n    let %twice = add(%once, %outside);\n    let %last = multiply(%twice, %twice);\n"
      "    if (less(%last, 2f)) { let %in_branch = sqrt(%last); %in_branch } else { let %same = %last; %same }\n  };\n"
      "  let %g = fn (%z: float32) -> float32 { let %only = negative(%z); %only };\n"
      "  (%f(1f), add(%f(2f), %g(%x)))\n}");
  EXPECT_EQ(count_lets(before), 9);
  const IRModule after =
      run_pass("DeadCodeElimination", before, with_option("relay.DeadCodeElimination.inline_once", Value(true)));
  // %outside, %twice, %last and %f stay.
  EXPECT_EQ(count_lets(after), 4) << relay::print_module(after);
  expect_same_results(before, after, {ramp({}, 2)}, 0);
}

TEST(DeadCodeElimination, MayIgnoreEffects) {
  const IRModule before = read("def @main(%x: float32) { let %r = ref(%x); let %_ = ref_write(%r, 2f); %x }");
  EXPECT_EQ(count_lets(run_pass("DeadCodeElimination", before)), 2);
  const auto context = with_option("relay.DeadCodeElimination.ignore_impurity", Value(true));
  EXPECT_EQ(count_lets(run_pass("DeadCodeElimination", before, context)), 0);
}

TEST(EliminateCommonSubexpr, LeavesWhatItsOptionSkips) {
  const std::string text = "def @main(%x: float32) { (exp(%x), exp(%x), abs(%x), abs(%x)) }";
  const auto count = [&](const Value& skip) {
    const IRModule after =
        run_pass("EliminateCommonSubexpr", read(text), with_option("relay.EliminateCommonSubexpr.fskip", skip));
    int64_t calls = 0;
    relay::post_order(after->lookup("main"), [&](const Expr& e) { calls += e.is<relay::CallNode>(); });
    return calls;
  };
  const auto is_exp = [](const Expr& e) { return e.as<relay::CallNode>()->as_op()->name == "exp"; };
  EXPECT_EQ(count(Value(make_packed(is_exp))), 3);
  EXPECT_EQ(count(Value(make_packed([](const Expr&) { return false; }))), 2);
  EXPECT_TRUE(kit::user_error_of([&] {
                count(Value(make_packed([](const Expr&) { return "maybe"; })));
              }).starts_with("fskip gives \"maybe\", which is not a bool\n"));
}

TEST(RemoveUnusedFunctions, KeepsWhatTheEntriesReach) {
  const IRModule before = read(
      "def @shared(%x: float32) { exp(%x) }\ndef @other(%x: float32) { @shared(%x) }\n"
      "def @unused(%x: float32) { %x }\ndef @main(%x: float32) { %x }");
  const auto names = [](const IRModule& module) {
    std::vector<std::string> result;
    for (const auto& [var, function] : module->functions()) result.push_back(var->name_hint);
    return result;
  };
  EXPECT_EQ(names(run_pass("RemoveUnusedFunctions", before)), std::vector<std::string>{"main"});
  const auto entries = [](Array<std::string> list) {
    return with_option("relay.RemoveUnusedFunctions.entry_functions", Value(std::move(list)));
  };
  EXPECT_EQ(names(run_pass("RemoveUnusedFunctions", before, entries({"other"}))),
            (std::vector<std::string>{"shared", "other"}));
  EXPECT_EQ(names(run_pass("RemoveUnusedFunctions", before, entries({"main", "unused"}))),
            (std::vector<std::string>{"unused", "main"}));
  EXPECT_EQ(kit::user_error_of([&] { run_pass("RemoveUnusedFunctions", before, entries({"mian"})); }),
            "RemoveUnusedFunctions: the module has no function @mian to enter");
}

TEST(FuseOps, ItsLevelIsItsOwnOrTheContexts) {
  const auto depth = [](int32_t context_level, std::optional<int64_t> level) {
    pass::PassContext context;
    context.opt_level = context_level;
    if (level) context.config.set("relay.FuseOps.fuse_opt_level", Value(*level));
    return fuse_options(context).max_depth;
  };
  const int64_t many = FuseOptions().max_depth;
  EXPECT_EQ(depth(2, {}), many);
  EXPECT_EQ(depth(0, {}), 1);
  EXPECT_EQ(depth(2, 0), 1);
  EXPECT_EQ(depth(0, 2), many);
  EXPECT_EQ(depth(0, -1), 1);
  EXPECT_EQ(kit::user_error_of([&] { depth(0, -2); }),
            "relay.FuseOps.fuse_opt_level must be a level, or -1 for the context's, got -2");
}

// Each option's listed default is the pass's behaviour without the option.
TEST(PassOptions, DefaultsAreWhatHoldsWithoutThem) {
  ops::register_all_ops();
  int num_defaults = 0;
  std::set<std::string> seen;  // a pass of two lists counts as it runs by its name
  for (const auto& list : {by_name(), canonical(), native({})}) {
    for (const pass::Pass& pass : list) {
      if (!seen.insert(pass.info.name).second) continue;
      pass::PassContext context = typed_context();
      pass::declare_options(pass.info);
      for (const pass::ConfigKey& option : pass.info.options) {
        const std::string key = pass::option_key(pass.info.name, option.name);
        if (!option.default_text.empty()) context.config.set(key, pass::parse_config_value(key, option.default_text));
      }
      num_defaults += static_cast<int>(context.config.size());
      if (context.config.empty()) continue;
      for (const IRModule& module : {kit::random_program(3, {.steps = 40}), read(kEachOption)}) {
        const IRModule plain = run_pass(pass.info.name, module), with = run_pass(pass.info.name, module, context);
        EXPECT_EQ(relay::print_module(plain), relay::print_module(with)) << pass.info.name;
      }
      // No program here is that deep.
      EXPECT_EQ(fuse_options(context).max_depth, FuseOptions().max_depth);
    }
  }
  EXPECT_GT(num_defaults, 10);
}

// An attribute of an op, for one test.
class OpAttr {
 public:
  OpAttr(const char* op, std::string key, Value value) : op_(get_op(op)), key_(std::move(key)) {
    op_->set(OpKey<Value>{key_}, std::move(value));
  }
  ~OpAttr() { op_->erase(key_); }

 private:
  Op op_;
  std::string key_;
};

constexpr const char* kDense =
    "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) -> (Tensor[(1, 2), float32], "
    "Tensor[(1, 2), float32]) {\n  let %y = nn.dense(%x, %w);\n  (atan(%y), %y)\n}";

TEST(ToMixedPrecision, UsersSayWhatTheirOpsMay) {
  ops::register_all_ops();
  const std::string key = kPrecisionAttr;
  const auto text = [] { return main_after("ToMixedPrecision", kDense, typed_context()); };
  const auto is_cast_before_atan = [&] { return text().find("atan(%y)") == std::string::npos; };
  EXPECT_TRUE(is_cast_before_atan());
  std::vector<std::string> types;
  const auto follow = [&](const relay::Call&, const std::string& type) {
    types.push_back(type);
    return Array<Value>{Value(1), Value("float32"), Value(type)};
  };
  {
    const OpAttr attr("atan", key, Value(make_packed(follow)));
    EXPECT_FALSE(is_cast_before_atan()) << text();
    EXPECT_EQ(types.at(0), "float16");
  }
  const OpAttr never("nn.dense", key, Value(make_packed([](const relay::Call&, const std::string&) { return 2; })));
  EXPECT_EQ(text().find("float16"), std::string::npos);
}

TEST(ToMixedPrecision, WhatUsersSayIsChecked) {
  ops::register_all_ops();
  const auto error = [](const Value& rule) {
    const OpAttr attr("nn.dense", kPrecisionAttr, rule);
    return kit::user_error_of([] { run_pass("ToMixedPrecision", read(kDense)); });
  };
  EXPECT_TRUE(error(Value(make_packed([](const relay::Call&, const std::string&) {
                return 7;
              }))).starts_with("its FTVMMixedPrecisionConversionType gives 7; it gives 0 (always), 1 (follow) or 2"));
  const auto wide = [](const relay::Call&, const std::string&) {
    return Array<Value>{Value(0), Value("float32"), Value("float32")};
  };
  EXPECT_TRUE(error(Value(make_packed(wide)))
                  .starts_with("its FTVMMixedPrecisionConversionType wants results of \"float32\"; what computes in "
                               "float16 gives it too\n"));
  const auto odd_sums = [](const relay::Call&, const std::string&) {
    return Array<Value>{Value(0), Value("int8"), Value("float16")};
  };
  EXPECT_TRUE(error(Value(make_packed(odd_sums)))
                  .starts_with("its FTVMMixedPrecisionConversionType wants sums in \"int8\"; they are kept in float32, "
                               "and a rule may say that or float16\n"));
  EXPECT_TRUE(
      error(Value(5)).starts_with("the attribute 'FTVMMixedPrecisionConversionType' of op 'nn.dense' is not a "
                                  "function"));
}

TEST(ToMixedPrecision, MayRefuseOpsThatNobodySaysAnythingOf) {
  static std::once_flag once;
  std::call_once(once, [] {
    ops::OpBuilder("test.unlisted", "A user's op.").arg("x").relation([](const relay::RelationInput& in) -> Type {
      return in.tensor(0);
    });
  });
  const std::string text = "def @main(%x: Tensor[(4), float32]) { test.unlisted(%x) }";
  const auto error = [&](int64_t mode) {
    return kit::user_error_of([&] {
      run_pass("ToMixedPrecision", read(text), with_option("relay.ToMixedPrecision.missing_op_mode", Value(mode)));
    });
  };
  EXPECT_TRUE(error(0).starts_with("ToMixedPrecision knows nothing of test.unlisted, and missing_op_mode is 0"));
  EXPECT_EQ(error(3), "relay.ToMixedPrecision.missing_op_mode must be 0, 1 or 2, got 3");
  const auto context = with_option("relay.ToMixedPrecision.missing_op_mode", Value(1));
  EXPECT_EQ(main_after("ToMixedPrecision", text, context).find("float16"), std::string::npos);
}

// The entry returns the small type; a function that others call keeps its type.
TEST(ToMixedPrecision, ResultsChangeTheirTypeUnlessTheyMustNot) {
  const IRModule before = read(
      "def @callee(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) -> Tensor[(1, 2), float32] {"
      " nn.dense(%x, %w) }\n"
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) -> (Tensor[(1, 2), float32], "
      "(Tensor[(1, 2), float32], (Tensor[(1, 2), float32],))) {\n"
      "  let %y = nn.dense(@callee(%x, %w), %w);\n  (nn.relu(%y), (exp(%y), (%y,)))\n}");
  IRModule after = run_pass("ToMixedPrecision", before);
  const auto type_of_result = [&](const char* name) {
    return to_string(after->lookup(name)->checked_type().as<FuncTypeNode>()->ret_type);
  };
  EXPECT_EQ(type_of_result("main"), "(Tensor[(1, 2), float16], (Tensor[(1, 2), float32], (Tensor[(1, 2), float16],)))");
  EXPECT_EQ(type_of_result("callee"), "Tensor[(1, 2), float32]");
  after =
      run_pass("ToMixedPrecision", before, with_option("relay.ToMixedPrecision.keep_orig_output_dtype", Value(true)));
  EXPECT_EQ(type_of_result("main"), "(Tensor[(1, 2), float32], (Tensor[(1, 2), float32], (Tensor[(1, 2), float32],)))");
}

constexpr const char* kRound = "def @main(%x: Tensor[(2), float32]) { round(%x) }";

// Steps have no slope by the project's rule; a user lets the gradient through them, as training of quantized networks
// does.
TEST(FirstOrderGradient, UsersGiveGradientsOfOps) {
  ops::register_all_ops();
  const auto gradient = [] {
    return interp::run_main(run_pass("FirstOrderGradient", read(kRound)),
                            {NDArray::from_vector<float>({2}, DataType::float_(32), {0.25f, 2})})
        .back();
  };
  EXPECT_FLOAT_EQ(gradient().data<float>()[0], 0.0f);
  const auto straight = [](const relay::Call&, const Expr& by_result) { return Array<Expr>{by_result}; };
  const OpAttr attr("round", kGradientAttr, Value(make_packed(straight)));
  EXPECT_FLOAT_EQ(gradient().data<float>()[0], 1.0f);
  EXPECT_FLOAT_EQ(gradient().data<float>()[1], 1.0f);
}

TEST(FirstOrderGradient, WhatUsersGiveIsChecked) {
  ops::register_all_ops();
  const auto error = [](const Value& rule, const std::string& text = kRound) {
    const OpAttr attr("round", kGradientAttr, rule);
    return kit::user_error_of([&] { run_pass("FirstOrderGradient", read(text)); });
  };
  const auto two = [](const relay::Call&, const Expr& gradient) { return Array<Expr>{gradient, gradient}; };
  EXPECT_NE(error(Value(make_packed(two))).find("it gives a list of 1: for each argument an expression"),
            std::string::npos);
  const auto summed = [](const relay::Call&, const Expr& gradient) {
    return Array<Expr>{ops::reduce("sum", gradient, Shape{0}, false)};
  };
  const std::string wrong_type =
      "its gradient by argument 0 is of type float32, and the argument of Tensor[(2), float32]";
  EXPECT_TRUE(error(Value(make_packed(summed))).starts_with(wrong_type)) << error(Value(make_packed(summed)));
  // Also where it would broadcast on the way to a parameter.
  const std::string behind = "def @main(%x: Tensor[(2), float32]) { add(round(nn.relu(%x)), %x) }";
  EXPECT_TRUE(error(Value(make_packed(summed)), behind).starts_with(wrong_type));
  const auto typed_wrong = [](const relay::Call&, const Expr& gradient) {
    return Array<Expr>{relay::make_call("nn.dense", {gradient, gradient})};
  };
  EXPECT_TRUE(error(Value(make_packed(typed_wrong))).starts_with("the gradient of round does not fit the program: "));
  EXPECT_TRUE(error(Value(3)).starts_with("the attribute 'FPrimalGradient' of op 'round' is not a function but 3"));
}

}  // namespace
}  // namespace headrace::passes
