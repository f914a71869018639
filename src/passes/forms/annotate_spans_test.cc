// Tests AnnotateSpans: the places that nodes get, and constants too large to print.
#include "passes/forms/annotate_spans.h"

#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

TEST(AnnotateSpans, PointIntoTheProgramsText) {
  ops::register_all_ops();
  const auto x = relay::make_var("x", make_tensor_type({2}, DataType::float_(32)));
  const Expr body = ops::add(ops::unary("exp", x), relay::make_constant(ramp({2}, 1)));
  const IRModule before = relay::infer_type(make_module(relay::make_function({x}, body)));
  const IRModule after = run_pass("AnnotateSpans", before);
  EXPECT_EQ(relay::print_module(after),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(2), float32]) {\n"
            "  %0 = exp(%x);\n"
            "  add(%0, const(Tensor[(2), float32], [1, 1.25]))\n"
            "}\n");
  const auto& sum = *after->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>();
  EXPECT_EQ(to_string(sum.span), "GeneratedSource:4:3");
  EXPECT_EQ(to_string(sum.args[0]->span), "GeneratedSource:3:8");
  EXPECT_EQ(run_pass("AnnotateSpans", after), after) << "it has these spans already";
}

TEST(AnnotateSpans, LargeConstantsStayAsTheyAre) {
  ops::register_all_ops();
  const NDArray data = ramp({100}, 1);
  const IRModule before = relay::infer_type(make_module(relay::make_function({}, relay::make_constant(data))));
  const IRModule after = annotate_spans(before);
  const auto body = after->lookup("main").as<relay::FunctionNode>()->body;
  EXPECT_EQ(body.as<relay::ConstantNode>()->data.tensor().data, data.tensor().data);
}

}  // namespace
}  // namespace headrace::passes
