// Tests that raised loops keep their meaning, and that each refusal gives its reason.
#include "tir/raise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "interp/tir_interp.h"
#include "kit/dtypes.h"
#include "kit/errors.h"
#include "kit/native_kernels.h"
#include "lower/compute_rule.h"
#include "lower/lower_function.h"
#include "object/structural_equal.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "tir/compute_form.h"
#include "tir/parse.h"
#include "tir/plain_loops.h"
#include "tir_passes/pipeline.h"

namespace headrace::tir {
namespace {

using kit::kF32;
using testing::ElementsAre;
using testing::HasSubstr;

PrimFunc function_of(const std::string& body, const std::string& signature) {
  return parse_function("#[tir_version = \"1\"]\nprim_func @f" + signature + " {\n" + body + "\n}\n", "t.tir");
}

constexpr const char* kMatrix = "(x: Buffer[(2, 3), float32]) -> (y: Buffer[(2), float32])";

// Returns the result of native code made by the schedules of lower/.
std::vector<float> run_native(const Compute& compute, const NDArray& x) {
  const PrimFunc loops = lower::schedule(compute, "kernel", {.vector_bits = 128});
  const NDArray y = kit::NativeKernels({tir_passes::run_pipeline(loops)}).run(0, {x})[0];
  return {y.data<float>(), y.data<float>() + y.num_elements()};
}

// Returns the result of the form raised from `body` for x = {{1, 2, 3}, {4, 5, 6}}; the loops themselves must give the
// same.
std::vector<float> raised(const std::string& body, const std::string& signature = kMatrix) {
  const PrimFunc function = function_of(body, signature);
  const auto form = raise(function);
  if (!form) {
    ADD_FAILURE() << form.refusal().message;
    return {};
  }
  const NDArray x = NDArray::from_vector({2, 3}, kF32, std::vector<float>{1, 2, 3, 4, 5, 6});
  const NDArray y = interp::run_prim_func(plain_loops(form.value(), "g"), {x})[0];
  const NDArray wanted = interp::run_prim_func(function, {x})[0];
  const std::vector<float> result(y.data<float>(), y.data<float>() + y.num_elements());
  EXPECT_EQ(result, std::vector<float>(wanted.data<float>(), wanted.data<float>() + wanted.num_elements()));
  EXPECT_EQ(result, run_native(form.value(), x));
  return result;
}

std::string refusal_of(const std::string& body, const std::string& signature = kMatrix) {
  const auto form = raise(function_of(body, signature));
  if (form) return "";
  EXPECT_EQ(form.refusal().code, HR_REASON_FUSE_PATTERN);
  return form.refusal().message;
}

TEST(Raise, OneStoreInAnyOrderOfLoops) {
  const std::string turned = "(x: Buffer[(2, 3), float32]) -> (y: Buffer[(3, 2), float32])";
  EXPECT_THAT(raised("for i in serial(2) { for j in serial(3) { y[j, i] = x[i, j] * 2f; } }", turned),
              ElementsAre(2, 8, 4, 10, 6, 12));
  EXPECT_THAT(raised("for i in serial(2) { let v: float32 = x[i, 1]; let w: float32 = v + v; y[i] = v * w; }"),
              ElementsAre(8, 50));
  const std::string single = "(x: Buffer[(2, 3), float32]) -> (y: Buffer[(1, 2), float32])";
  EXPECT_THAT(raised("for i in serial(2) { y[0, i] = x[i, 2]; }", single), ElementsAre(3, 6));
  EXPECT_THAT(raised("y[] = x[1, 0];", "(x: Buffer[(2, 3), float32]) -> (y: Buffer[(), float32])"), ElementsAre(4));
}

TEST(Raise, SymbolsCoverSymbols) {
  const auto form = raise(function_of("for i in serial(n * 2) { y[i] = x[floordiv(i, 2)]; }",
                                      "(x: Buffer[(n), float32]) -> (y: Buffer[(2 * n), float32])"));
  ASSERT_TRUE(form) << form.refusal().message;
  EXPECT_EQ(form.value().stages[0].axes.size(), 1u);
}

TEST(Raise, Reductions) {
  const std::string loops = "for i in serial(2) { ";
  const std::string sum = "for k in serial(3) { y[i] = y[i] + x[i, k]; }";
  EXPECT_THAT(raised(loops + "y[i] = 0f; " + sum + " }"), ElementsAre(6, 15));
  EXPECT_THAT(raised(loops + "y[i] = 0f; } for k in serial(3) { for j in serial(2) { y[j] = x[j, k] + y[j]; } }"),
              ElementsAre(6, 15))
      << "in two nests";
  EXPECT_THAT(raised(loops + "y[i] = x[i, 0]; " + sum + " }"), ElementsAre(7, 19)) << "from another start";
  EXPECT_THAT(raised(loops + "y[i] = 0f; " + sum + " y[i] = y[i] / 3f; }"), ElementsAre(2, 5));
  EXPECT_THAT(raised(loops + "y[i] = 10f; " + sum + " y[i] = y[i] * y[i]; }"), ElementsAre(256, 625));
  EXPECT_THAT(raised(loops + "y[i] = 1f; for k in serial(3) { y[i] = x[i, k] * y[i]; } }"), ElementsAre(6, 120));
  EXPECT_THAT(raised(loops + "y[i] = -inff; for k in serial(3) { y[i] = max(y[i], 0f - x[i, k]); } }"),
              ElementsAre(-1, -4));
  EXPECT_THAT(raised(loops + "y[i] = 5f; for k in serial(3) { y[i] = min(x[i, k], y[i]); } }"), ElementsAre(1, 4));
  EXPECT_THAT(raised(loops + "y[i] = 5f; } for i in serial(2) { for k in serial(3) { y[i] = y[i] * x[i, k]; } }"),
              ElementsAre(30, 600));
}

TEST(Raise, ResultsKeptInOneElement) {
  EXPECT_THAT(raised("for i in serial(2) { allocate a: Buffer[(1), float32] in registers; a[0] = 0f;\n"
                     "for k in serial(3) { a[0] = a[0] + x[i, k]; } y[i] = a[0] + x[i, 0]; }"),
              ElementsAre(7, 19));
  EXPECT_THAT(raised("for i in serial(2) { allocate a: Buffer[(1), float32] in registers; a[0] = 0f;\n"
                     "for k in serial(3) { a[0] = a[0] + x[i, k]; } y[i] = a[0]; }"),
              ElementsAre(6, 15));
}

TEST(Raise, SeveralStagesAndStores) {
  EXPECT_THAT(raised("allocate t: Buffer[(2, 3), float32] in workspace;\n"
                     "for i in serial(2) { for j in serial(3) { t[i, j] = x[i, j] * x[i, j]; } }\n"
                     "for i in serial(2) { y[i] = t[i, 0] + t[i, 2]; }"),
              ElementsAre(10, 52));
  const auto form = raise(function_of("for i in serial(2) { y[i] = x[i, 0]; z[i] = x[i, 1]; }",
                                      "(x: Buffer[(2, 3), float32]) -> (y: Buffer[(2), float32], "
                                      "z: Buffer[(2), float32])"));
  ASSERT_TRUE(form) << form.refusal().message;
  EXPECT_EQ(form.value().stages.size(), 2u);
  EXPECT_EQ(form.value().outputs.size(), 2u);
}

// Raises the plain loops of ops' compute forms and compares with the forms.
TEST(Raise, IsTheInverseOfPlainLoops) {
  lower::register_all_rules();
  for (const std::string body : {
           "nn.relu(add(%x, %x))",
           "nn.softmax(%x)",
           "transpose(%x, axes=[1, 0])",
           "sum(%x, axis=[1])",
           "mean(%x, axis=[0], keepdims=True)",
           "max(exp(%x), axis=[1])",
           "nn.dense(%x, %x)",
           "nn.pad(%x, 0f, pad_width=[[1, 0], [0, 2]])",
           "concatenate((%x, %x), axis=0)",
           "reverse(strided_slice(%x, begin=[0, 1], end=[2, 3]), axis=1)",
       }) {
    const IRModule module = relay::infer_type(
        relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32]) { " + body + " }\n"));
    const auto group = module->functions().at(module->get_global_var("main")).cast<relay::FunctionNode>();
    const Compute compute = lower::compute_of(group);
    const PrimFunc loops = plain_loops(compute, "f");
    const NDArray x = NDArray::from_vector({2, 3}, kF32, std::vector<float>{1, 2, 3, -4, 5, -6});
    const NDArray wanted = interp::run(module, "main", {Value(x)}).as<NDArray>();
    const NDArray direct = interp::run_prim_func(loops, {x})[0];
    ASSERT_EQ(direct.shape(), wanted.shape()) << body;
    const auto expect_wanted = [&](const NDArray& found) {
      for (int64_t i = 0; i < wanted.num_elements(); ++i)
        EXPECT_NEAR(found.data<float>()[i], wanted.data<float>()[i], 1e-5) << body;
    };
    expect_wanted(direct);
    const bool has_parts = std::any_of(compute.stages.begin(), compute.stages.end(),
                                       [](const ComputeStage& stage) { return stage.is_partial(); });
    const auto form = raise(loops);
    if (has_parts) {
      EXPECT_FALSE(form) << body;
      continue;
    }
    ASSERT_TRUE(form) << body << ": " << form.refusal().message;
    expect_wanted(interp::run_prim_func(plain_loops(form.value(), "g"), {x})[0]);
  }
}

TEST(Raise, RefusalsSayWhy) {
  const std::string loops = "for i in serial(2) { ", sum = "for k in serial(3) { y[i] = y[i] + x[i, k]; }";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"for i in parallel(2) { y[i] = 0f; }",
       "the loop over 'i' is parallel: the order of its iterations is the function's own"},
      {"for i in serial(begin=1, extent=2) { y[i - 1] = 0f; }", "the loop over 'i' begins at 1, not at 0"},
      {"for i: int32 in serial(2i32) { y[i] = 0f; }", "the loop variable 'i' is int32, not int64"},
      {"for i in serial(1) { y[i] = 0f; }", "the loop over 'i' ends at 1, dimension 0 of 'y' at 2"},
      {loops + "y[1 - i] = 0f; }", "the index 1 - i of 'y' is not a loop variable, each in one place"},
      {loops + "if (i < 1) { y[i] = 0f; } else { y[i] = 1f; } }", "is not a store"},
      {loops + "assert i < 2, \"no\"; }", "is not a store"},
      {loops + "for k in serial(3) { y[i] = x[i, k]; } }", "'y' is stored again in every iteration over 'k'"},
      {loops + "y[i] = 0f; } " + loops + "y[i] = 1f; }", "there are two stores of 'y'"},
      {loops + "y[i] = 0f; } " + loops + "y[i] = y[i] + 1f; }", "there are two stores of 'y'"},
      {loops + "y[i] = 0f; y[i] = 1f; }", "there are two stores of 'y'"},
      {loops + "y[i] = y[1 - i]; }", "'y' is read within the loops that store it"},
      {loops + "y[i] = 0f; y[i] = y[i] + 1f; }", "'y' is read within the loops that store it"},
      {loops + sum + " y[i] = 0f; }", "loops that hold others are raised with a first store"},
      {"for k in serial(3) { " + loops + "y[i] = y[i] + x[i, k]; } }", "'y' is combined with before it is stored to"},
      {loops + "y[i] = 0f; for k in serial(3) { y[i] = y[i] - x[i, k]; } }",
       "the inner loops do not combine 'y' with a value by +, *, max or min"},
      {loops + "y[i] = 0f; for k in serial(3) { y[i] = y[i] + y[i]; } }", "the inner loops do not combine 'y'"},
      {loops + "y[i] = 0f; for k in serial(3) { y[1 - i] = y[1 - i] + x[i, k]; } }",
       "the inner loops do not combine 'y'"},
      {loops + "y[i] = y[i]; " + sum + " }", "the first store of 'y' reads it"},
      {loops + "y[i] = 0f; " + sum + " y[1 - i] = 1f; }", "the store after the reduction of 'y' is to another place"},
      {loops + "y[i] = 0f; " + sum + " y[i] = y[0]; }", "the store after the reduction reads other places of 'y'"},
      {loops + "y[i] = 0f; for k in serial(i) { y[i] = y[i] + x[i, k]; } }",
       "'i' is in the shape or the extents of 'y', and is a dimension of no input and no output"},
      {loops + "allocate a: Buffer[(2), float32] in registers; a[0] = 0f; for k in serial(3) { a[0] = a[0] + x[i, k]; "
               "} y[i] = a[0]; }",
       "'a' is allocated inside loops and has more than one element"},
      {loops + "allocate a: Buffer[(1), float32] in registers; y[i] = 0f; " + sum + " }",
       "'a' is allocated inside loops for more than one result of a reduction"},
      {"for k in serial(3) { " + loops + "y[i] = 0f; for l in serial(3) { y[i] = y[i] + x[i, l]; } } }",
       "'y' is stored again in every iteration over 'k'"},
      {"evaluate x[0, 0];", "is not a store"},
      {"allocate t: Buffer[(2), float32] in workspace; " + loops + "t[i] = 0f; }", "nothing is stored to 'y'"},
      {"y[ramp(0, 1, 2)] = broadcast(0f, 2);", "the index ramp(0, 1, 2) of 'y' is not a loop variable"},
      {loops + "y[i] = reduce_add(x[i, ramp(0, 1, 2)]); }", "values are scalars"},
  };
  for (const auto& [body, reason] : cases) EXPECT_THAT(refusal_of(body), HasSubstr(reason)) << body;
  EXPECT_EQ(refusal_of("for i in serial(2) { y[i] = x[i]; }",
                       "(x: Buffer[(2), float32, strides=(2)]) -> (y: Buffer[(2), float32])"),
            "the parameter 'x' has strides");
  EXPECT_EQ(refusal_of("allocate t: Buffer[(2), float32] in workspace;\nfor i in serial(2) { t[i] = 0f; }\n"
                       "for i in serial(2) { y[i] = t[i]; }\n"
                       "for i in serial(2) { for k in serial(3) { t[i] = t[i] + x[i, k]; } }"),
            "'t' is read before its reduction ends");
}

TEST(Raise, MalformedFunctionsAreErrors) {
  const Buffer y = make_buffer("y", kF32, {make_int(2)});
  const PrimFunc broken = make_prim_func("f", {y}, 1, make_store(y, make_float(0), {make_prim_var("i")}));
  EXPECT_THAT(kit::user_error_of([&] { (void)raise(broken); }), HasSubstr("the variable 'i' is not in scope"));
}

}  // namespace
}  // namespace headrace::tir
