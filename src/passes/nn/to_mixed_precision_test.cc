// Tests ToMixedPrecision: the category of every op, what users say of theirs, its options, and what it leaves.
#include "passes/nn/to_mixed_precision.h"

#include <mutex>
#include <set>

#include "kit/errors.h"
#include "object/function.h"
#include "ops/register.h"
#include "passes/nn/precision_lists.h"
#include "passes/tests/golden_pass.h"

namespace headrace::passes {
namespace {

// An op whose result is never float32 is never asked.
bool gives_no_floats(const std::string& op) {
  static const std::set<std::string> kNames{"all",
                                            "any",
                                            "argmax",
                                            "argmin",
                                            "argsort",
                                            "argwhere",
                                            "bitwise_and",
                                            "bitwise_not",
                                            "bitwise_or",
                                            "bitwise_xor",
                                            "equal",
                                            "argwhere_bounded",
                                            "greater",
                                            "isfinite",
                                            "greater_equal",
                                            "isinf",
                                            "isnan",
                                            "invert_permutation",
                                            "left_shift",
                                            "less",
                                            "less_equal",
                                            "logical_and",
                                            "logical_not",
                                            "logical_or",
                                            "logical_xor",
                                            "not_equal",
                                            "ndarray_size",
                                            "nn.bitpack",
                                            "nn.bitserial_conv2d",
                                            "nn.bitserial_dense",
                                            "sparse_reshape",
                                            "right_shift",
                                            "searchsorted",
                                            "shape_of",
                                            "unravel_index",
                                            "random.threefry_generate",
                                            "random.threefry_split"};
  return kNames.contains(op);
}

TEST(ToMixedPrecision, KnowsEveryOp) {
  ops::register_all_ops();
  for (const std::string& op : op_names()) {
    if (op.starts_with("test.") || op.starts_with("facts.")) continue;  // other tests register them
    const auto category = precision_category(relay::make_call(op, {}), DataType::float_(16));
    EXPECT_NE(category.has_value(), gives_no_floats(op)) << op;
  }
}

TEST(ToMixedPrecision, WindowsOfAnyRankAreAlike) {
  const IRModule after =
      run_pass("ToMixedPrecision", read("def @main(%x: Tensor[(1, 2, 8), float32], %w: Tensor[(2, 2, 3), float32]) {\n"
                                        "  nn.max_pool1d(nn.conv1d(%x, %w), pool_size=[2])\n}"));
  EXPECT_EQ(relay::print_module(after),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(1, 2, 8), float32], %w: Tensor[(2, 2, 3), float32]) {\n"
            "  %0 = cast(%x, dtype=\"float16\");\n"
            "  %1 = cast(%w, dtype=\"float16\");\n"
            "  %2 = nn.conv1d(%0, %1, out_dtype=\"float16\");\n"
            "  nn.max_pool1d(%2, pool_size=[2])\n"
            "}\n");
}

// Packed data stays in the small type from convolution to convolution.
TEST(ToMixedPrecision, LayoutTransformsFollow) {
  const IRModule after = run_pass(
      "ToMixedPrecision", read("def @main(%x: Tensor[(1, 2, 2, 2), float32], %w: Tensor[(2, 2, 1, 1), float32]) {\n"
                               "  layout_transform(nn.conv2d(%x, %w), src_layout=\"NCHW\", dst_layout=\"NCHW2c\")\n}"));
  EXPECT_EQ(to_string(main_of(after).body->checked_type()), "Tensor[(1, 1, 2, 2, 2), float16]");
}

// Groups made by FuseOps are compiled as they are.
TEST(ToMixedPrecision, LeavesUnitsAlone) {
  const IRModule fused =
      run_pass("FuseOps", read("def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {\n"
                               "  nn.relu(nn.dense(%x, %w))\n"
                               "}"));
  EXPECT_EQ(relay::print_module(run_pass("ToMixedPrecision", fused)), relay::print_module(fused));
}

TEST(ToMixedPrecision, TheTypeIsAnOption) {
  pass::PassContext context = typed_context();
  context.config.set("relay.ToMixedPrecision.mixed_precision_type", Value("bfloat16"));
  context.config.set("relay.ToMixedPrecision.keep_orig_output_dtype", Value(true));
  const IRModule before = relay::infer_type(program_before(read_golden("to_mixed_precision"))),
                 after = run_pass("ToMixedPrecision", before, context);
  EXPECT_NE(relay::print_module(after).find("bfloat16"), std::string::npos);
  expect_same_results(before, after, {ramp({1, 2, 3, 3}, 0.5f), ramp({2, 2, 1, 1}, 0.5f)}, 4e-2);
  context.config.set("relay.ToMixedPrecision.mixed_precision_type", Value("int8"));
  try {
    mixed_precision_options(context);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(),
              "relay.ToMixedPrecision.mixed_precision_type must be \"float16\", \"bfloat16\" or \"float64\", got "
              "\"int8\"");
  }
}

// Bounds that float16 does not reach would be infinite there, and bfloat16 has them.
TEST(ToMixedPrecision, ClipsToWideBoundsStay) {
  const auto small_clips = [](double bound, const char* type) {
    pass::PassContext context = typed_context();
    context.config.set("relay.ToMixedPrecision.mixed_precision_type", Value(std::string(type)));
    const IRModule before =
        read(fmt::format("def @main(%x: Tensor[(2), float32]) {{ clip(%x, a_min=-{0}f, a_max={0}f) }}", bound));
    return count_calls(run_pass("ToMixedPrecision", before, context), "cast");
  };
  EXPECT_EQ(small_clips(65504, "float16"), 1);
  EXPECT_EQ(small_clips(128000, "float16"), 0);
  EXPECT_EQ(small_clips(128000, "bfloat16"), 1);
}

constexpr const char* kDenseProgram =
    "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) -> (Tensor[(1, 2), float32], "
    "Tensor[(1, 2), float32]) {\n  let %y = nn.dense(%x, %w);\n  (atan(%y), %y)\n}";

TEST(ToMixedPrecision, UsersSayWhatTheirOpsMay) {
  ops::register_all_ops();
  const std::string key = kPrecisionAttr;
  const auto text = [] { return main_after("ToMixedPrecision", kDenseProgram, typed_context()); };
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

TEST(ToMixedPrecision, RegisteredCategoriesAreChecked) {
  ops::register_all_ops();
  const auto error = [](const Value& rule) {
    const OpAttr attr("nn.dense", kPrecisionAttr, rule);
    return kit::user_error_of([] { run_pass("ToMixedPrecision", read(kDenseProgram)); });
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

}  // namespace
}  // namespace headrace::passes
