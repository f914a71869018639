#include "passes/layout/alter_op_layout.h"

#include <gmock/gmock.h>

#include "kit/errors.h"
#include "kit/relay_programs.h"
#include "object/function.h"
#include "ops/attrs_copy.h"
#include "ops/nn/conv.h"
#include "ops/tensor/broadcast.h"
#include "passes/tests/golden_pass.h"

namespace headrace::passes {
namespace {

using ::testing::HasSubstr;

// An alteration of an op for as long as a test runs.
class Alteration {
 public:
  template <typename F>
  Alteration(const char* op, F alter) {
    ops::register_all_ops();
    op_ = get_op(op);
    op_->set(OpKey<Value>{kAlterLayoutAttr}, Value(make_packed(std::move(alter))));
  }
  ~Alteration() { op_->erase(kAlterLayoutAttr); }
  Alteration(const Alteration&) = delete;

 private:
  Op op_;
};

using Exprs = Array<Expr>;
using Types = Array<Type>;

// A function that asks for layouts of a convolution, and multiplies its kernel by a factor.
auto conv_in(std::string data, std::string kernel, double factor = 1) {
  return [=](const ops::ConvAttrs* old, const Exprs& args, const Types& types, const Type& result) -> Value {
    EXPECT_EQ(args.size(), types.size());
    EXPECT_TRUE(result.is<TensorTypeNode>());
    const Attrs attrs = ops::copy_of_own_type(*old, [&](ops::ConvAttrs& a) {
      a.data_layout = data;
      a.kernel_layout = kernel;
    });
    const Expr weight = factor == 1 ? args[1] : ops::multiply(args[1], relay::make_scalar(factor));
    return Value(relay::make_call(get_op("nn.conv2d"), {args[0], weight}, attrs));
  };
}

template <typename F>
Alteration alter_conv(F f) {
  return Alteration("nn.conv2d", [f](const Attrs& attrs, const Exprs& args, const Types& types, const Type& result) {
    return f(attrs.as<ops::ConvAttrs>(), args, types, result);
  });
}

const char* const kOneConvolution =
    "def @main(%x: Tensor[(1, 3, 6, 6), float32], %w: Tensor[(8, 3, 3, 3), float32]) {\n"
    "  nn.conv2d(%x, %w)\n"
    "}\n";

TEST(AlterOpLayout, TextAndResults) {
  const Alteration conv = alter_conv(conv_in("NCHW4c", "OIHW4i4o"));
  check_golden(read_golden("alter_op_layout"));
}

TEST(AlterOpLayout, WithoutFunctionsNothingChanges) {
  const IRModule before = read(kOneConvolution);
  EXPECT_EQ(run_pass("AlterOpLayout", before), before);
  const Alteration none("nn.conv2d", [](const Attrs&, const Exprs&, const Types&, const Type&) -> Value { return {}; });
  EXPECT_EQ(run_pass("AlterOpLayout", before), before);
}

// A sum over packed channels sums all their parts, and leaves parts of one element; without keepdims it is as written.
TEST(AlterOpLayout, SumsOverPackedChannels) {
  const auto sum = [](const std::string& attrs) {
    return "def @main(%x: Tensor[(1, 8, 3, 3), float32], %w: Tensor[(8, 8, 1, 1), float32]) {\n"
           "  %0 = nn.conv2d(%x, %w, kernel_size=[1, 1]);\n  nn.relu(sum(%0, axis=[-3]" +
           attrs + "))\n}\n";
  };
  const Alteration conv = alter_conv(conv_in("NCHW4c", "OIHW4i4o"));
  for (const bool keeps : {true, false}) {
    const IRModule before = read(sum(keeps ? ", keepdims=True" : ""));
    const IRModule after = run_pass("AlterOpLayout", before);
    const std::string text = relay::print_module(after);
    EXPECT_THAT(text, HasSubstr(keeps ? "axis=[1, 4], keepdims=True" : "sum(%3, axis=[-3])"));
    EXPECT_THAT(text, HasSubstr(keeps ? "src_layout=\"NCHW1c\", dst_layout=\"NCHW\"" : "src_layout=\"NCHW4c\""));
    expect_same_results(before, after, {ramp({1, 8, 3, 3}, 1), ramp({8, 8, 1, 1}, 2)}, 1e-5);
  }
}

// A call whose layout is packed already takes another one alone: what follows stays in the layout as written.
TEST(AlterOpLayout, CallsThatArePacked) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 5, 5, 4), float32], %w: Tensor[(3, 2, 1, 1, 4, 4), float32]) {\n"
      "  nn.relu(nn.conv2d(%x, %w, kernel_size=[1, 1], data_layout=\"NCHW4c\", kernel_layout=\"OIHW4i4o\"))\n"
      "}\n");
  for (const auto& [data, kernel] :
       {std::pair("NCHW", "OIHW"), std::pair("NHWC", "HWIO"), std::pair("NCHW2c", "OIHW2i2o")}) {
    const Alteration conv = alter_conv(conv_in(data, kernel));
    const IRModule after = run_pass("AlterOpLayout", before);
    EXPECT_EQ(count_calls(after, "layout_transform"), 3) << relay::print_module(after);
    EXPECT_THAT(relay::print_module(after), HasSubstr(fmt::format("src_layout=\"NCHW4c\", dst_layout=\"{}\"", data)));
    expect_same_results(before, after, {ramp({1, 2, 5, 5, 4}, 1), ramp({3, 2, 1, 1, 4, 4}, 2)}, 1e-5);
  }
  const Alteration odd = alter_conv(conv_in("NCHW3c", "OIHW3i3o"));
  EXPECT_THAT(kit::user_error_of([&] { run_pass("AlterOpLayout", before); }), HasSubstr("layout_transform"));
}

// The function's other arguments and attributes count, too; those arguments are in the layout as written.
TEST(AlterOpLayout, ArgumentsMayBeOthers) {
  const IRModule before = read(kOneConvolution);
  const Alteration conv = alter_conv(conv_in("NHWC", "HWIO", 2));
  const IRModule after = run_pass("AlterOpLayout", before);
  EXPECT_EQ(count_calls(after, "multiply"), 1);
  EXPECT_EQ(count_calls(after, "layout_transform"), 3) << relay::print_module(after);
  EXPECT_THAT(relay::print_module(after), HasSubstr("data_layout=\"NHWC\", kernel_layout=\"HWIO\""));
  const IRModule doubled = read(
      "def @main(%x: Tensor[(1, 3, 6, 6), float32], %w: Tensor[(8, 3, 3, 3), float32]) {\n"
      "  nn.conv2d(%x, multiply(%w, 2f))\n"
      "}\n");
  kit::Random random(3);
  expect_same_results(doubled, after, kit::random_inputs(before, random), 1e-4);
}

// Places of a program's text stay, in nodes that the pass makes as well.
TEST(AlterOpLayout, SpansStay) {
  const Alteration conv = alter_conv(conv_in("NHWC", "OHWI"));
  const IRModule after = run_pass("AlterOpLayout", read(kOneConvolution));
  int calls = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& node) {
    if (!node.is<relay::CallNode>()) return;
    ++calls;
    EXPECT_THAT(to_string(node->span), HasSubstr("test.relay:"));
  });
  EXPECT_EQ(calls, 4);
}

TEST(AlterOpLayout, RefusesWhatDoesNotFit) {
  const IRModule module = read(kOneConvolution);
  const auto message = [&] { return kit::user_error_of([&] { run_pass("AlterOpLayout", module); }); };
  {
    const Alteration conv = alter_conv(conv_in("NCHW4c", "OIHW4i4o"));
    EXPECT_THAT(message(), HasSubstr("its layout alteration (FTVMAlterOpLayout) asks for NCHW4c, in which"));
  }
  {
    const Alteration conv = alter_conv(conv_in("NCDW", "OIHW"));
    EXPECT_THAT(message(), HasSubstr("the layout alteration of nn.conv2d: 'NCDW' is not an order of the letters NCHW"));
  }
  {
    const Alteration wrong("nn.conv2d", [](const Attrs&, const Exprs& args, const Types&, const Type&) -> Value {
      return Value(args[0]);
    });
    EXPECT_THAT(message(), HasSubstr("its layout alteration (FTVMAlterOpLayout) gives Tensor[(1, 3, 6, 6), float32]"));
  }
  {
    const Alteration number("nn.conv2d",
                            [](const Attrs&, const Exprs&, const Types&, const Type&) -> Value { return Value(3); });
    EXPECT_THAT(message(), HasSubstr("its layout alteration gave no expression but 3"));
  }
}

}  // namespace
}  // namespace headrace::passes
