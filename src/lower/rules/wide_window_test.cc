// Windows that reach far beyond their data: no padded copy of it is made, and results are those of the interpreter.
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "lower/compute_rule.h"
#include "lower/loops/window_copies.h"
#include "lower/lower_function.h"
#include "lower/rules/tests/rule_cases.h"
#include "lower/rules/tests/window_choice.h"
#include "ops/nn/conv.h"
#include "ops/nn/pool.h"
#include "relay/infer/infer_type.h"
#include "tir/workspace.h"

// Attributes are given by name; the others have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace headrace::lower {
namespace {

using Args = std::vector<Expr>;

// 5,001 taps apart: a padded copy of one plane would have 25 million elements.
const Shape kFar{2500, 2500};

struct Wide {
  std::string name;
  std::vector<In> inputs;
  RuleCases::Build build;
};

// A max pool and both average pools.
void add_pools(std::vector<Wide>& cases, const std::string& name, const In& in, const Shape& taps,
               const Shape& dilation, const Shape& strides = {1, 1}) {
  cases.push_back(
      {"max " + name, {in}, [=](const Args& a) {
         return ops::max_pool(
             a[0], PoolChoice{.pool_size = taps, .strides = strides, .dilation = dilation, .padding = kFar}.over(2));
       }});
  for (const bool counts : {false, true}) {
    cases.push_back({fmt::format("avg {} {}", name, counts), {in}, [=](const Args& a) {
                       return ops::avg_pool(a[0], PoolChoice{.pool_size = taps,
                                                             .strides = strides,
                                                             .dilation = dilation,
                                                             .padding = kFar,
                                                             .count_include_pad = counts}
                                                      .over(2));
                     }});
  }
}

void add_convs(std::vector<Wide>& cases) {
  for (const int64_t stride : {1, 2}) {
    cases.push_back({fmt::format("conv {}", stride), {{{1, 3, 6, 21}}, {{4, 3, 3, 3}}}, [=](const Args& a) {
                       return ops::conv2d(
                           a[0], a[1],
                           ConvChoice{.strides = {stride, stride}, .padding = kFar, .dilation = {2500, 2500}});
                     }});
  }
  // Rows too short for vectors.
  cases.push_back({"conv of a small plane", {{{1, 3, 3, 3}}, {{4, 3, 3, 3}}}, [](const Args& a) {
                     return ops::conv2d(a[0], a[1], ConvChoice{.padding = kFar, .dilation = {2500, 2500}});
                   }});
  cases.push_back({"conv transpose dilated", {{{1, 3, 2, 2}}, {{3, 4, 2, 2}}}, [](const Args& a) {
                     return ops::conv2d_transpose(a[0], a[1], ConvChoice{.padding = kFar, .dilation = {5000, 5000}});
                   }});
  cases.push_back({"conv transpose strided", {{{1, 3, 1, 1}}, {{3, 4, 3, 3}}}, [](const Args& a) {
                     return ops::conv2d_transpose(a[0], a[1], ConvChoice{.strides = {5000, 5000}});
                   }});
}

std::vector<Wide> wide_cases() {
  std::vector<Wide> cases;
  add_pools(cases, "few taps", {{1, 2, 4, 5}}, {3, 3}, {2500, 2500});
  add_pools(cases, "more taps than data", {{1, 2, 4, 5}}, {6, 11}, {1000, 500});
  add_pools(cases, "strided", {{1, 2, 9, 40}}, {3, 3}, {2500, 2500}, {2, 2});
  add_pools(cases, "half", {{1, 2, 4, 5}, kF16}, {3, 6}, {2500, 1000});
  add_pools(cases, "integers", {{1, 2, 4, 5}, kI8, -30, 30}, {3, 6}, {2500, 1000});
  add_convs(cases);
  return cases;
}

relay::Function function_of(const Wide& wide) {
  register_all_rules();
  Array<relay::Var> params;
  Args args;
  for (const In& in : wide.inputs) {
    params.push_back(relay::make_var("x", make_tensor_type(in.shape, in.dtype)));
    args.push_back(params.back());
  }
  return relay::infer_type(relay::make_function(params, wide.build(args))).cast<relay::FunctionNode>();
}

TEST(WideWindows, GiveWhatTheInterpreterGives) {
  RuleCases cases;
  for (const Wide& wide : wide_cases()) cases.add(wide.name, wide.inputs, wide.build, 1e-5);
  cases.check();
}

TEST(WideWindows, NeedLittleWorkspace) {
  for (const Wide& wide : wide_cases()) {
    const tir::PrimFunc kernel = lower_function(function_of(wide), "f", {});
    EXPECT_LT(tir::workspace_of(*kernel).size_bytes, size_t{64} << 10) << wide.name;
  }
}

// A window of many taps over little data is a walk over the data.
TEST(WideWindows, AsManyTermsAsThereIsData) {
  const Wide wide{"max", {{{1, 1, 4, 5}}}, [](const Args& a) {
                    return ops::max_pool(a[0],
                                         PoolChoice{.pool_size = {20000, 20000}, .padding = {10000, 10000}}.over(2));
                  }};
  const tir::Compute compute = copy_windows(compute_of(function_of(wide)), {});
  ASSERT_EQ(compute.stages.size(), 1u);
  EXPECT_EQ(as_int(compute.stages[0].reduce_extents[0]), 4);
  EXPECT_EQ(as_int(compute.stages[0].reduce_extents[1]), 5);
}

TEST(WideWindows, CopiesInProportionStay) {
  const Wide wide{"max", {{{1, 1, 40, 50}}}, [](const Args& a) {
                    return ops::max_pool(a[0], PoolChoice{.pool_size = {3, 3}, .padding = {1, 1}}.over(2));
                  }};
  EXPECT_EQ(copy_windows(compute_of(function_of(wide)), {}).stages.size(), 2u) << "the padded copy, and the pool";
}

}  // namespace
}  // namespace headrace::lower
