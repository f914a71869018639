// Tests SimplifyInference: norms as arithmetic, the norms that builds leave, and the places of new nodes.
#include "passes/simplify/simplify_inference.h"

#include <gmock/gmock.h>

#include "passes/tests/pass_testing.h"
#include "kit/random.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// A norm of %x with vectors %g and %b of its channels, in float64.
struct NormCase {
  const char* name;
  Shape shape;
  int64_t channels;
  const char* body;
};
void PrintTo(const NormCase& c, std::ostream* out) { *out << c.name; }

IRModule norm_program(const NormCase& c) {
  return read(fmt::format(
      "def @main(%x: Tensor[({}), float64], %g: Tensor[({}), float64], %b: Tensor[({}), float64]) {{\n  {}\n}}",
      fmt::join(c.shape, ", "), c.channels, c.channels, c.body));
}

std::vector<std::string> ops_of(const IRModule& module) {
  std::vector<std::string> ops;
  relay::post_order(module->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    if (call != nullptr && call->as_op() != nullptr) ops.push_back(call->as_op()->name);
  });
  return ops;
}

class Norms : public testing::TestWithParam<NormCase> {
 protected:
  static NDArray random_doubles(const Shape& shape, kit::Random& random) {
    NDArray array = NDArray::empty(shape, DataType::float_(64));
    for (int64_t i = 0; i < array.num_elements(); ++i) array.data<double>()[i] = random.uniform(-2, 3);
    return array;
  }
};

TEST_P(Norms, BecomeArithmeticOfTheSameResults) {
  const NormCase& c = GetParam();
  const IRModule before = norm_program(c), after = run_pass("SimplifyInference", before);
  EXPECT_THAT(ops_of(after), testing::Each(testing::Not(testing::StartsWith("nn.")))) << relay::print_module(after);
  kit::Random random(1);
  const std::vector<NDArray> inputs{random_doubles(c.shape, random), random_doubles({c.channels}, random),
                                    random_doubles({c.channels}, random)};
  expect_same_results(before, after, inputs, 1e-13);
}

TEST_P(Norms, StayInBuilds) {
  const IRModule before = norm_program(GetParam());
  pass::PassContext context = typed_context();
  EXPECT_EQ(pass::run_passes(canonical(), before, context)->lookup("main"), before->lookup("main"));
  context.config.set("relay.SimplifyInference.unpack_norms", Value(false));
  EXPECT_EQ(run_pass("SimplifyInference", before, context)->lookup("main"), before->lookup("main"));
  context.config.set("relay.SimplifyInference.unpack_norms", Value(true));
  EXPECT_NE(pass::run_passes(canonical(), before, context)->lookup("main"), before->lookup("main"));
}

// Each node that is new, constants too.
TEST_P(Norms, StandWhereTheOpStood) {
  const IRModule before = norm_program(GetParam()), after = run_pass("SimplifyInference", before);
  const Expr old = before->lookup("main").cast<relay::FunctionNode>()->body;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    if (e.is<OpNode>() || e.is<relay::FunctionNode>() || e.is<relay::VarNode>()) return;
    ASSERT_TRUE(e->span) << relay::print_expr(e);
    EXPECT_EQ(e->span->line, old->span->line) << relay::print_expr(e);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Norms,
    testing::Values(
        NormCase{"LayerLast", {2, 3, 4}, 4, "nn.layer_norm(%x, %g, %b, epsilon=0.01f)"},
        NormCase{"LayerMiddle", {2, 3, 4}, 3, "nn.layer_norm(%x, %g, %b, axis=1)"},
        NormCase{"LayerPlain", {2, 3, 4}, 4, "nn.layer_norm(%x, %g, %b, center=False, scale=False)"},
        NormCase{"Instance", {2, 3, 4, 5}, 3, "nn.instance_norm(%x, %g, %b)"},
        NormCase{"InstanceLast", {2, 4, 5, 3}, 3, "nn.instance_norm(%x, %g, %b, axis=-1, scale=False)"},
        NormCase{"InstanceMatrix", {3, 4}, 4, "nn.instance_norm(%x, %g, %b)"},
        NormCase{"Group", {2, 6, 4, 3}, 6, "nn.group_norm(%x, %g, %b, num_groups=3)"},
        NormCase{"GroupLast", {2, 4, 3, 6}, 6, "nn.group_norm(%x, %g, %b, num_groups=2, axis=3)"},
        NormCase{"GroupMiddle", {2, 4, 6, 3}, 6, "nn.group_norm(%x, %g, %b, num_groups=2, axis=2, center=False)"},
        NormCase{"GroupMatrix", {3, 6}, 6, "nn.group_norm(%x, %g, %b, num_groups=2)"},
        NormCase{"L2", {2, 3, 4}, 4, "nn.l2_normalize(%x, eps=0.001f, axis=[1])"},
        NormCase{"L2OfTwo", {2, 3, 4}, 4, "nn.l2_normalize(%x, eps=100f, axis=[0, -1])"},
        NormCase{"L2OfAll", {2, 3, 4}, 4, "nn.l2_normalize(%x, eps=0.001f)"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SimplifyInference, BatchNormStandsWhereTheOpStood) {
  const IRModule after =
      run_pass("SimplifyInference", read("def @main(%x: Tensor[(1, 3, 2, 2), float32], %g: Tensor[(3), float32]) {\n"
                                         "  %0 = nn.batch_norm(%x, %g, %g, %g, %g);\n  %0.0\n}"));
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    EXPECT_TRUE(e.is<OpNode>() || e.is<relay::VarNode>() || e->span) << relay::print_expr(e);
  });
}

// Sizes that are not known stay so.
TEST(SimplifyInference, OfSymbolicSizes) {
  const IRModule before = read(
      "def @main(%x: Tensor[(n, 6, m), float32], %g: Tensor[(6), float32]) {\n"
      "  nn.group_norm(%x, %g, %g, num_groups=3)\n}");
  const IRModule after = run_pass("SimplifyInference", before);
  EXPECT_THAT(ops_of(after), testing::Contains("variance")) << relay::print_module(after);
  EXPECT_EQ(to_string(after->lookup("main")->checked_type()), to_string(before->lookup("main")->checked_type()));
  expect_same_results(before, after, {ramp({2, 6, 3}, -1), ramp({6}, 1)});
}

// Deviations of 0 with an epsilon that float16 does not hold, and means whose squares it does not hold.
TEST(SimplifyInference, HalfFloatsAreComputedInFloat32) {
  for (const char* dtype : {"float16", "bfloat16"}) {
    const IRModule before = read(fmt::format(
        "def @main(%x: Tensor[(2, 3), {0}], %g: Tensor[(3), {0}], %m: Tensor[(3), {0}], %v: Tensor[(3), {0}]) {{\n"
        "  %0 = nn.batch_norm(%x, %g, %g, %m, %v, epsilon=1e-8f);\n  (%0.0, nn.l2_normalize(%x, eps=1e-8f, "
        "axis=[1]))\n}}",
        dtype));
    const IRModule after = run_pass("SimplifyInference", before);
    const auto fill = [&](const Shape& shape, std::initializer_list<double> values) {
      const NDArray data = NDArray::empty(shape, main_of(before).params[0]->checked_type().as<TensorTypeNode>()->dtype);
      int64_t i = 0;
      for (const double value : values) set_element(data.tensor(), i++, value);
      return data;
    };
    const std::vector<NDArray> inputs{fill({2, 3}, {1, 1024, -512, 0.5, 1024, 512}), fill({3}, {1, 0.5, 2}),
                                      fill({3}, {1, 1024, 0}), fill({3}, {0, 1, 16384})};
    const auto results = interp::run_main(after, inputs);
    // gamma * (x - mean) / sqrt(variance + epsilon) + beta, where gamma is beta too.
    const double want[] = {1, 0.5, 2 * -512 / 128.0 + 2};
    for (const int64_t i : {0, 1, 2}) {
      EXPECT_NEAR(element_as_double(results[0].tensor(), i), want[i], 2e-2 * std::abs(want[i])) << dtype << " " << i;
    }
    // x / |x|: 1024 / sqrt(1 + 1024^2 + 512^2)
    EXPECT_NEAR(element_as_double(results[1].tensor(), 1), 0.8944, 5e-3) << dtype;
  }
}

// There is no mean of nothing.
TEST(SimplifyInference, OfNoElements) {
  const IRModule before =
      read("def @main(%x: Tensor[(2, 0), float32], %g: Tensor[(0), float32]) { nn.layer_norm(%x, %g, %g) }");
  EXPECT_EQ(run_pass("SimplifyInference", before)->lookup("main"), before->lookup("main"));
}

}  // namespace
}  // namespace headrace::passes
