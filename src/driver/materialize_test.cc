#include "driver/materialize.h"

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "kit/errors.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

class Materialize : public ::testing::Test {
 protected:
  Materialize() { ops::register_all_ops(); }

  // `text` with meta[relay.Constant][i] = weights[i].
  static Expr expr(const std::string& text, const std::vector<NDArray>& weights) {
    return relay::parse_expr(text, "<test>", {.weights = &weights});
  }
  // The evaluator and the interpreter agree to the last bit.
  void expect_same(const Expr& closed) {
    const NDArray expected = interp::run_expr(closed).as<NDArray>();
    const NDArray actual = evaluator_->evaluate(closed);
    EXPECT_EQ(actual.shape(), expected.shape());
    EXPECT_TRUE(actual.content_equal(expected));
  }

  std::shared_ptr<pass::ConstantEvaluator> evaluator_ = make_compiling_evaluator(1, 0);
};

NDArray counting(Shape shape, DataType dtype, int64_t first) {
  NDArray data = NDArray::empty(std::move(shape), dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i) set_element_int(data.tensor(), i, first + i % 97);
  return data;
}

TEST_F(Materialize, LargeConstantsAreInputs) {
  const std::string text = "multiply(meta[relay.Constant][0], meta[relay.Constant][1])";
  for (const int64_t first : {1, 50}) {  // the second time the program is known, the data is another
    expect_same(expr(text, {counting({64, 3, 3, 32}, DataType::float_(32), first),
                            counting({64, 1, 1, 1}, DataType::float_(32), first + 7)}));
  }
}

TEST_F(Materialize, ShapesAndScalarsStayInside) {
  const std::vector<NDArray> weights{counting({6, 50}, DataType::float_(32), 0)};
  expect_same(expr("transpose(reshape(meta[relay.Constant][0], newshape=[3, 100]), axes=[1, 0])", weights));
  expect_same(expr("add(meta[relay.Constant][0], 1.5f)", weights));
  expect_same(expr("full(3f, shape=[40, 50], dtype=\"float32\")", weights));
  expect_same(expr("concatenate((meta[relay.Constant][0], meta[relay.Constant][0]), axis=0)", weights));
}

TEST_F(Materialize, WhatCannotBeComputedIsSaid) {
  const Expr closed = expr("cast(meta[relay.Constant][0], dtype=\"int4\")", {counting({6, 50}, DataType::int_(8), 0)});
  EXPECT_NE(kit::user_error_of([&] { evaluator_->evaluate(closed); }).find("does not compute with int4"),
            std::string::npos);
}

TEST_F(Materialize, LightWorkIsInterpreted) {
  const Expr closed = expr("cast(meta[relay.Constant][0], dtype=\"uint8\")", {counting({6, 50}, DataType::int_(8), 0)});
  const NDArray expected = interp::run_expr(closed).as<NDArray>();
  EXPECT_TRUE(make_compiling_evaluator(1)->evaluate(closed).content_equal(expected));
}

TEST_F(Materialize, ACompileUsesIt) {
  // Half a million elements: above what is interpreted, below what stays a call.
  const IRModule module = relay::parse_module(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(1, 640), float32]) {\n"
      "  nn.dense(%x, multiply(ones(shape=[800, 640]), 0.5f), units=800)\n"
      "}\n");
  const Model model = make_model(module);
  CompiledModel compiled = compile_to_memory(model);
  ASSERT_EQ(compiled.report.manifest.weights.size(), 1u);
  EXPECT_EQ(compiled.report.manifest.programs[0].graph.steps.size(), 1u);
  const NDArray x = counting({1, 640}, DataType::float_(32), 0);
  const auto executor = load::make_executor(open_compiled(std::move(compiled), "test"), artifact::kDefaultProgram, 1);
  const NDArray expected = interp::run_main(model.module, {x}).at(0);
  EXPECT_TRUE(load::run(*executor, std::vector{x}).at(0).content_equal(expected));
}

}  // namespace
}  // namespace headrace::driver
