// The ops' cases (ops/tests/op_cases.txt), compiled: against the interpreter, which the oracle has checked; and larger
// shapes, for what vectors leave over.
#include "ops/tests/op_cases.h"

#include <gtest/gtest.h>

#include "kit/native_kernels.h"
#include "kit/options.h"
#include "lower/compute_rule.h"
#include "lower/kernel_rule.h"
#include "lower/lower_function.h"
#include "lower/rules/tests/rule_cases.h"
#include "ops/op_keys.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "tir_passes/pipeline.h"

namespace headrace::lower {
namespace {

using ops::testing::OpCase;
using ops::testing::read_op_cases;

// Which cases are compiled: those whose ops all have rules (rules_test.cc names the ops without). Of the ops of single
// elements elementwise_test.cc compiles every dtype, so below full size every fifth case of each will do.
class Choice {
 public:
  bool takes(const OpCase& c) {
    bool is_of_elements = true;
    size_t before = 0;
    for (const std::string& name : ops::testing::ops_of(c)) {
      const Op op = get_op(name);
      if (op->find(kComputeRule) == nullptr && op->find(kKernelRule) == nullptr) return false;
      const ops::FusionKind* kind = op->find(ops::kFusionKind);
      is_of_elements &= kind != nullptr && *kind <= ops::FusionKind::broadcast;
      before = seen_[name]++;
    }
    return !is_of_elements || before % 5 == 0 || kit::options().size == kit::TestSize::kFull;
  }

 private:
  std::map<std::string, size_t> seen_;
};

RuleCases compiled_cases() {
  register_all_rules();
  RuleCases cases;
  Choice choice;
  for (const OpCase& c : read_op_cases()) {
    if (!c.fails() && choice.takes(c)) cases.add_text(c.name, c.program, c.inputs, c.tolerance);
  }
  return cases;
}

TEST(OpCases, CompiledAgreesWithTheInterpreter) { compiled_cases().check(); }

TEST(OpCases, AsCAgreesWithTheInterpreter) { compiled_cases().check_as_c(); }

TEST(OpCases, CompiledStopsWhereTheInterpreterDoes) {
  register_all_rules();
  std::vector<tir::PrimFunc> functions;
  std::vector<OpCase> late;
  for (const OpCase& c : read_op_cases()) {
    if (!c.fails_late()) continue;
    const auto function = relay::infer_type(relay::parse_expr(c.program)).cast<relay::FunctionNode>();
    functions.push_back(
        tir_passes::run_pipeline(lower_function(function, fmt::format("case{}", functions.size()), {})));
    late.push_back(c);
  }
  const kit::NativeKernels kernels(functions);
  for (size_t i = 0; i < late.size(); ++i) EXPECT_NE(kernels.error_of(i, late[i].inputs), "") << late[i].program;
  EXPECT_GE(late.size(), 5u);
}

// A call of %x0, %x1, ... on larger tensors.
void add_call(RuleCases& cases, const std::string& call, const std::vector<In>& inputs, double tolerance = 0) {
  std::string params;
  for (size_t i = 0; i < inputs.size(); ++i) {
    params += fmt::format("{}%x{}: Tensor[({}), {}]", i == 0 ? "" : ", ", i, fmt::join(inputs[i].shape, ", "),
                          inputs[i].dtype);
  }
  cases.add_text(call, fmt::format("fn ({}) {{ {} }}", params, call), inputs, tolerance);
}

TEST(OpCases, LargerTensors) {
  RuleCases cases;
  add_call(cases, "cumsum(%x0, axis=1)", {{{7, 300, 13}}}, 2e-6);
  add_call(cases, "cumprod(%x0, axis=0)", {{{33, 17}, kF16, 0.5, 1.5}}, 2e-3);
  add_call(cases, "cumsum(%x0, exclusive=True)", {{{5, 41}, kI8, -9, 9}});
  add_call(cases, "sort(%x0, axis=0)", {{{129, 9}, kF32, -2, 2, true}});
  add_call(cases, "argsort(%x0, is_ascend=False)", {{{40, 1000}, kI32, -99, 99}});
  add_call(cases, "topk(%x0, k=17, axis=1)", {{{3, 100, 5}, kF64, -2, 2, true}});
  add_call(cases, "searchsorted(%x0, %x1)", {{{1}}, {{3, 70}}});
  add_call(cases, "scatter_elements(%x0, %x1, %x2, axis=1, reduction=\"add\")",
           {{{9, 33}}, {{9, 70}, kI64, -33, 32}, {{9, 70}}}, 2e-6);
  add_call(cases, "scatter_nd(%x0, %x1, %x2, mode=\"max\")", {{{9, 11, 33}}, {{2, 50}, kI32, -9, 8}, {{50, 33}}});
  add_call(cases, "one_hot(%x0, %x1, %x2, depth=37)", {{{19, 3}, kI64, -3, 40}, {Shape{}}, {Shape{}}});
  add_call(cases, "trilu(%x0, %x1)", {{{3, 33, 41}, kF16}, {Shape{}, kI64, -9, 9}});
  add_call(cases, "layout_transform(%x0, src_layout=\"NCHW\", dst_layout=\"NCHW8c\")", {{{2, 32, 7, 9}}});
  add_call(cases, "sliding_window(%x0, axis=1, window_shape=[3, 5], strides=[2, 1])", {{{3, 17, 40}, kI8, -9, 9}});
  add_call(cases, "reverse_sequence(%x0, %x1)", {{{9, 33, 5}}, {{9}, kI32, 0, 33}});
  add_call(cases, "nn.depth_to_space(%x0, block_size=3)", {{{1, 18, 11, 13}}});
  add_call(cases, "nn.space_to_depth(%x0, block_size=3)", {{{1, 2, 33, 39}}});
  add_call(cases, "nn.dilate(%x0, strides=[1, 2, 3])", {{{3, 17, 19}, kI32, -9, 9}});
  add_call(cases, "collapse_sum_to(%x0, shape=[1, 33])", {{{5, 9, 33}}}, 2e-6);
  add_call(cases, "adv_index((%x0, %x1, %x2))", {{{9, 11, 33}}, {{40, 1}, kI64, -9, 8}, {{7}, kI32, -11, 10}});
  cases.check();
}

// Tiles that are full and that are not, rows of batches that share the weights, layers of one thread and of several.
TEST(OpCases, LargerRecurrentLayers) {
  RuleCases cases;
  const auto steps = [&](const std::string& cell, int64_t gates, Shape shape, int64_t lanes, const std::string& more) {
    const int64_t t = shape[0], b = shape[1], h = shape[2], d = more.find("bidirectional") == std::string::npos ? 1 : 2;
    std::vector<In> inputs{{{t, b, d * gates * h}},
                           {{d, (h + lanes - 1) / lanes, h, gates, lanes}, kF32, -0.2, 0.2},
                           {{b}, kI32, 0, static_cast<double>(t)},
                           {{d, b, h}}};
    if (cell == "lstm") inputs.insert(inputs.end(), {In{{d, b, h}}, In{{d, 3 * h}}});
    if (cell == "gru") inputs.push_back({{d, h}});
    std::string args;
    for (size_t i = 0; i < inputs.size(); ++i) args += fmt::format("%x{}, ", i);
    add_call(cases, fmt::format("nn.recurrent_steps({}cell=\"{}\"{})", args, cell, more), inputs, 2e-5);
  };
  const std::string all = ", all_steps=True", both = all + ", direction=\"bidirectional\"";
  steps("lstm", 4, {5, 1, 40}, 16, all);
  steps("lstm", 4, {2, 5, 24}, 8, both + ", rows=3");
  steps("lstm", 4, {3, 4, 12}, 8, all + ", rows=64");
  steps("lstm", 4, {4, 5, 19}, 16, ", direction=\"reverse\"");
  steps("gru", 3, {4, 1, 33}, 16, all + ", linear_before_reset=True");
  steps("gru", 3, {2, 5, 20}, 8, both + ", rows=2");
  steps("gru", 3, {2, 1, 730}, 32, all);
  steps("rnn", 1, {4, 9, 50}, 32, both + ", rows=4");
  steps("rnn", 1, {3, 2, 31}, 5, "");
  cases.check();
}

// Where data, kernel and result split their channels alike, nothing is divided to find an element.
TEST(OpCases, PackedConvolutionsIndexTheirParts) {
  register_all_rules();
  for (const char* call : {"nn.conv2d(%d, %w, data_layout=\"NCHW16c\", kernel_layout=\"OIHW16i16o\")",
                           "nn.conv2d(%d, %v, data_layout=\"NCHW16c\", kernel_layout=\"OIHW1i16o\", groups=32)",
                           "nn.max_pool2d(%d, pool_size=[3, 3], layout=\"NCHW16c\")"}) {
    const auto function =
        relay::infer_type(relay::parse_expr(fmt::format("fn (%d: Tensor[(1, 2, 9, 9, 16), float32], "
                                                        "%w: Tensor[(4, 2, 3, 3, 16, 16), float32], "
                                                        "%v: Tensor[(2, 1, 3, 3, 1, 16), float32]) {{ {} }}",
                                                        call)))
            .cast<relay::FunctionNode>();
    const tir::Compute compute = compute_of(function);
    ASSERT_EQ(compute.stages.size(), 1u);
    EXPECT_EQ(to_string(compute.stages[0].value).find("//"), std::string::npos) << to_string(compute.stages[0].value);
  }
}

TEST(OpCases, LargerTensorsInParts) {
  RuleCases cases;
  for (const auto& [attrs, data, weight] : std::vector<std::tuple<std::string, Shape, Shape>>{
           {"data_layout=\"NCHW16c\", kernel_layout=\"OIHW16i16o\", padding=[1]",
            {1, 2, 11, 13, 16},
            {3, 2, 3, 3, 16, 16}},
           {"data_layout=\"NCHW8c\", kernel_layout=\"OIHW8i8o\", strides=[2, 2], padding=[0, 1]",
            {2, 2, 15, 14, 8},
            {3, 2, 3, 3, 8, 8}},
           {"data_layout=\"NCHW8c\", kernel_layout=\"OIHW8i8o\"", {1, 4, 7, 9, 8}, {2, 4, 1, 1, 8, 8}},
           {"data_layout=\"NCHW4c\", kernel_layout=\"OIHW1i4o\", padding=[1], groups=20",
            {1, 5, 9, 33, 4},
            {5, 1, 3, 3, 1, 4}},
           {"data_layout=\"NCHW\", kernel_layout=\"OIHW16o\", out_layout=\"NCHW16c\", strides=[2, 2], padding=[3]",
            {1, 3, 33, 35},
            {2, 3, 7, 7, 16}}}) {
    add_call(cases, fmt::format("nn.conv2d(%x0, %x1, {})", attrs), {{data}, {weight}}, 5e-6);
  }
  add_call(cases, "nn.max_pool2d(%x0, pool_size=[3, 3], strides=[2, 2], padding=[1], layout=\"NCHW16c\")",
           {{{1, 3, 19, 21, 16}}});
  add_call(cases, "nn.avg_pool2d(%x0, pool_size=[3, 3], padding=[1], layout=\"NCHW8c\")", {{{2, 3, 9, 11, 8}}}, 2e-6);
  add_call(cases, "nn.global_avg_pool2d(%x0, layout=\"NCHW8c\")", {{{1, 5, 7, 9, 8}}}, 2e-6);
  cases.check();
}

TEST(OpCases, LargerTensorsOfNetworks) {
  RuleCases cases;
  add_call(cases, "nn.conv1d(%x0, %x1, strides=[2], padding=[3])", {{{1, 5, 61}}, {{7, 5, 7}}}, 5e-6);
  add_call(cases, "nn.conv3d(%x0, %x1, padding=[1])", {{{1, 3, 6, 9, 17}}, {{5, 3, 3, 3, 3}}}, 5e-6);
  add_call(cases, "nn.conv3d(%x0, %x1, strides=[1, 2, 2], groups=2)",
           {{{1, 4, 4, 9, 17}, kF16}, {{6, 2, 2, 3, 3}, kF16}}, 2e-3);
  add_call(cases, "nn.conv1d_transpose(%x0, %x1, strides=[2])", {{{1, 3, 37}}, {{3, 4, 4}}}, 5e-6);
  add_call(cases, "nn.conv3d_transpose(%x0, %x1, strides=[2])", {{{1, 2, 3, 5, 9}}, {{2, 3, 2, 3, 3}}}, 5e-6);
  add_call(cases, "nn.adaptive_avg_pool2d(%x0, output_size=[5, 7])", {{{1, 9, 17, 33}}}, 2e-6);
  add_call(cases, "nn.adaptive_max_pool1d(%x0, output_size=[40])", {{{2, 9, 17}, kI8, -9, 9}});
  add_call(cases, "nn.group_norm(%x0, %x1, %x2, num_groups=4)", {{{2, 12, 9, 17}}, {{12}}, {{12}}}, 5e-6);
  add_call(cases, "nn.instance_norm(%x0, %x1, %x2)", {{{2, 5, 333}, kF16}, {{5}, kF16}, {{5}, kF16}}, 4e-3);
  add_call(cases, "nn.l2_normalize(%x0, eps=1e-6f, axis=[-1])", {{{9, 133}}}, 2e-6);
  add_call(cases, "image.resize3d(%x0, size=[5, 9, 33])", {{{1, 2, 3, 5, 17}}}, 3e-6);
  add_call(cases, "vision.get_valid_counts(%x0, score_threshold=0.5f, id_index=-1)", {{{3, 150, 5}}});
  add_call(cases, "vision.non_max_suppression(%x0, %x1, %x2, %x3, %x4, id_index=-1)",
           {{{2, 150, 6}, kF32, 0, 9},
            {{2}, kI32, 99, 150},
            {{2, 150}, kI32, 0, 149},
            {Shape{}, kI32, 40, 40},
            {Shape{}, kF32, 0.4, 0.4}});
  cases.check();
}

}  // namespace
}  // namespace headrace::lower
