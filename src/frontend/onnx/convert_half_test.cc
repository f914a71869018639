// ONNX operators that sum, multiply up or normalise, on float16 and bfloat16 data whose sums pass what float16 holds
// (65504) or lie below what it resolves, while their results do not: in the interpreter and compiled. The expected
// numbers are worked out in double from the ONNX specification.
#include <cmath>

#include "driver/compile.h"
#include "frontend/onnx/op_table.h"
#include "frontend/onnx/tests/import_testing.h"
#include "kit/options.h"
#include "load/run.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using Numbers = std::vector<double>;

struct Case {
  std::string_view op;
  int64_t opset;
  std::vector<NDArray> data;  // float16
  Attributes attributes;
  Shape shape;
  Numbers expected;
  std::vector<NDArray> fixed_inputs = {};  // behind the data: axes and shapes
};

NDArray half(const Shape& shape, const Numbers& data) { return make_array(shape, data, DataType::float_(16)); }
NDArray half(const Numbers& data) { return half({static_cast<int64_t>(data.size())}, data); }

double sum_of(const Numbers& x, double (*term)(double)) {
  double sum = 0;
  for (const double value : x) sum += term(value);
  return sum;
}
double square(double x) { return x * x; }
Numbers mapped(Numbers x, const std::function<double(double)>& f) {
  for (double& value : x) value = f(value);
  return x;
}
// (x - mean) / deviation(variance)
Numbers normalized(const Numbers& x, const std::function<double(double)>& deviation) {
  const double count = static_cast<double>(x.size()), mean = sum_of(x, [](double v) { return v; }) / count;
  double variance = 0;
  for (const double value : x) variance += square(value - mean) / count;
  return mapped(x, [&](double value) { return (value - mean) / deviation(variance); });
}

const Numbers kLarge = {300, -600, 900, 1200};       // their squares pass 65504
const Numbers kSmall = {1e-4, -2e-4, 3e-4, 1.5e-4};  // their squares are below 2^-24
const Numbers kSwing = {40000, 40000, -50000, 24};   // so does their sum, on the way
const Numbers kMany(8, 60000);

std::vector<Case> norm_cases() {
  std::vector<Case> cases;
  const AttributeSpec epsilon("epsilon", 1e-12F);
  const auto root = [](double variance) { return std::sqrt(variance + 1e-12); };
  for (const Numbers& values : {kLarge, kSmall}) {
    // The elements as they are stored.
    const Numbers x = ops::testing::to_doubles(half(values));
    const Numbers normal = normalized(x, root);
    const NDArray image = half({1, 1, 2, 2}, x), one = half({1}, {1}), none = half({1}, {0});
    const NDArray ones = half(Numbers(4, 1)), zeros = half(Numbers(4, 0));
    cases.push_back({"InstanceNormalization", 6, {image, one, none}, {epsilon}, {1, 1, 2, 2}, normal});
    for (const int64_t stash : {1, 10}) {
      const AttributeSpec stash_type("stash_type", stash);
      cases.push_back({"LayerNormalization", 17, {half(x), ones, zeros}, {epsilon, stash_type}, {4}, normal});
      const Numbers rms = mapped(x, [&](double v) { return v / root(sum_of(x, square) / 4); });
      cases.push_back({"RMSNormalization", 23, {half(x), ones}, {epsilon, stash_type}, {4}, rms});
    }
    for (const int64_t opset : {18, 21}) {
      const Attributes attributes = {epsilon, AttributeSpec("num_groups", 1)};
      cases.push_back({"GroupNormalization", opset, {image, one, none}, attributes, {1, 1, 2, 2}, normal});
    }
    const Numbers standard = normalized(x, [](double variance) { return std::sqrt(variance) + 1e-9; });
    cases.push_back({"MeanVarianceNormalization", 13, {image}, {}, {1, 1, 2, 2}, standard});
    const double length = std::sqrt(sum_of(x, square));
    cases.push_back({"LpNormalization", 22, {half(x)}, {}, {4}, mapped(x, [&](double v) { return v / length; })});
  }
  cases.push_back({"LpNormalization", 22, {half(Numbers(4, 0))}, {}, {4}, Numbers(4, 0)});
  const double total = 480000;
  const Numbers eighth = mapped(kMany, [&](double v) { return v / total; });
  cases.push_back({"LpNormalization", 22, {half(kMany)}, {AttributeSpec("p", 1)}, {8}, eighth});
  const Numbers lrn = mapped(kLarge, [](double v) { return v / std::pow(1 + 1e-4 * v * v, 0.75); });
  cases.push_back({"LRN", 13, {half({4, 1, 1, 1}, kLarge)}, {AttributeSpec("size", 1)}, {4, 1, 1, 1}, lrn});
  const Numbers tail = {0, -8, -8, -8, -8};
  const double powers = sum_of(tail, [](double v) { return std::exp(v); });
  cases.push_back({"Softmax", 13, {half(tail)}, {}, {5}, mapped(tail, [&](double v) { return std::exp(v) / powers; })});
  cases.push_back(
      {"LogSoftmax", 13, {half(tail)}, {}, {5}, mapped(tail, [&](double v) { return v - std::log(powers); })});
  return cases;
}

std::vector<Case> pool_cases() {
  std::vector<Case> cases;
  const NDArray image = half({1, 1, 2, 2}, kLarge), flat = half({1, 1, 2, 2}, Numbers(4, 40000));
  const AttributeSpec kernel("kernel_shape", Ints{2, 2});
  const double length = std::sqrt(sum_of(kLarge, square));
  const double cubes = std::cbrt(sum_of(kLarge, [](double v) { return std::abs(v * v * v); }));
  cases.push_back({"LpPool", 18, {image}, {kernel}, {1, 1, 1, 1}, {length}});
  cases.push_back({"LpPool", 18, {image}, {kernel, AttributeSpec("p", 3)}, {1, 1, 1, 1}, {cubes}});
  cases.push_back({"GlobalLpPool", 13, {image}, {}, {1, 1, 1, 1}, {length}});
  cases.push_back({"GlobalLpPool", 13, {image}, {AttributeSpec("p", 3)}, {1, 1, 1, 1}, {cubes}});
  cases.push_back({"AveragePool", 13, {flat}, {kernel}, {1, 1, 1, 1}, {40000}});
  cases.push_back({"GlobalAveragePool", 13, {flat}, {}, {1, 1, 1, 1}, {40000}});
  cases.push_back({"GlobalAveragePool", 13, {half({1, 1, 2}, {40000, 40000})}, {}, {1, 1, 1}, {40000}});
  cases.push_back({"Col2Im",
                   18,
                   {half({1, 3, 3}, {0, 0, 40000, 0, 40000, 0, -50000, 0, 0})},
                   {},
                   {1, 1, 1, 5},
                   {0, 0, 30000, 0, 0},
                   {i64({2}, {1, 5}), i64({2}, {1, 3})}});
  return cases;
}

std::vector<Case> reduction_cases() {
  std::vector<Case> cases;
  const AttributeSpec flat("keepdims", 0);
  const auto add = [&](std::string_view op, const Numbers& x, double y) {
    cases.push_back({op, 13, {half(x)}, {flat}, {}, {y}});
  };
  add("ReduceSum", kSwing, 30024);
  add("ReduceMean", kMany, 60000);
  add("ReduceProd", {300, 300, 1.0 / 256, 1.0 / 512}, 90000.0 / 256 / 512);
  add("ReduceL1", {1e-4, -2e-4}, 3e-4);
  add("ReduceL2", kLarge, std::sqrt(sum_of(kLarge, square)));
  add("ReduceL2", kSmall, std::sqrt(sum_of(kSmall, square)));
  add("ReduceSumSquare", Numbers(4096, 1.0 / 4096), 1.0 / 4096);
  add("ReduceLogSum", kMany, std::log(480000));
  add("ReduceLogSumExp", Numbers(70000, 1), 1 + std::log(70000));
  cases.push_back({"CumSum", 13, {half({40000, 20000, -50000})}, {}, {3}, {40000, 60000, 10000}, {i64({}, {0})}});
  const std::vector<NDArray> thrice = {half({1}, {40000}), half({1}, {40000}), half({1}, {-50000})};
  cases.push_back({"Sum", 13, thrice, {}, {1}, {30000}});
  cases.push_back({"Mean", 13, {thrice[0], thrice[1]}, {}, {1}, {40000}});
  return cases;
}

std::vector<Case> product_cases() {
  std::vector<Case> cases;
  const Numbers a = {300, 300, 7}, b = {300, -300, 5};
  cases.push_back({"MatMul", 13, {half({1, 3}, a), half({3, 1}, b)}, {}, {1, 1}, {35}});
  cases.push_back({"MatMul",
                   13,
                   {half({2, 1, 3}, {300, 300, 7, 300, 300, 7}), half({2, 3, 1}, {300, -300, 5, 300, -300, 5})},
                   {},
                   {2, 1, 1},
                   {35, 35}});
  cases.push_back({"Gemm",
                   13,
                   {half({1, 3}, Numbers(3, 300)), half({3, 1}, Numbers(3, 300)), half({1}, {7})},
                   {AttributeSpec("alpha", 1.0F / 1024)},
                   {1, 1},
                   {270000.0 / 1024 + 7}});
  cases.push_back({"Einsum", 13, {half(a), half(b)}, {AttributeSpec("equation", "i,i->")}, {}, {35}});
  cases.push_back({"Conv", 13, {half({1, 3, 1, 1}, a), half({1, 3, 1, 1}, b)}, {}, {1, 1, 1, 1}, {35}});
  cases.push_back({"ConvTranspose", 13, {half({1, 3, 1, 1}, a), half({3, 1, 1, 1}, b)}, {}, {1, 1, 1, 1}, {35}});
  return cases;
}

// The result in the dtype that the data has: bfloat16 has the range of float32, so its cases say little of overflow,
// but they keep the dtypes of the results.
void check(const Case& c, DataType dtype) {
  SCOPED_TRACE(fmt::format("{} {} {}", c.op, c.opset, dtype.to_string()));
  std::vector<Operand> operands;
  std::vector<NDArray> inputs;
  for (const NDArray& data : c.data) {
    inputs.push_back(make_array(data.shape(), ops::testing::to_doubles(data), dtype));
    operands.push_back(inputs.back());
  }
  for (const NDArray& data : c.fixed_inputs) operands.push_back(fixed(data));
  const ImportedModel imported = import_node(c.op, c.opset, operands, c.attributes);
  driver::CompiledModel compiled = driver::compile_to_memory(driver::make_model(imported.module));
  const auto executor = load::make_executor(driver::open_compiled(std::move(compiled), "test"),
                                            artifact::kDefaultProgram, {.threads = 1});
  // One unit in the last place, and half of one for the data itself.
  const double tolerance = dtype.is_bfloat16() ? 1.6e-2 : 1.5e-3;
  double largest = 0;
  for (const double value : c.expected) largest = std::max(largest, std::abs(value));
  const std::vector<NDArray> results = {interp::run_main(imported.module, inputs).at(0),
                                        load::run(*executor, inputs).at(0)};
  for (const NDArray& got : results) {
    EXPECT_EQ(got.dtype(), dtype);
    ASSERT_EQ(got.shape(), c.shape);
    const Numbers values = ops::testing::to_doubles(got);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_LE(std::abs(values[i] - c.expected[i]), tolerance * largest) << values[i] << ", not " << c.expected[i];
  }
}

class ConvertHalf : public ops::testing::OpTest {};

TEST_F(ConvertHalf, SumsAreAccumulatedInFloat32) {
  for (const auto& cases : {norm_cases(), pool_cases(), reduction_cases(), product_cases()}) {
    for (const Case& c : cases) {
      check(c, DataType::float_(16));
      // Both dtypes take the same code of the importer, which is what sanitizers look at.
      if (kit::options().size != kit::TestSize::kFew) check(c, DataType::bfloat16());
    }
  }
}

// An element that receives several updates is rounded once.
TEST_F(ConvertHalf, ScatteredSumsAreRoundedOnce) {
  const NDArray x = half({2}, {40000, 1}), updates = half({2}, {40000, -50000});
  const AttributeSpec add("reduction", "add");
  expect_near(run_node("ScatterElements", 18, {x, i64({2}, {0, 0}), updates}, {add}).at(0), {2}, {30000, 1}, 1e-3);
  expect_near(run_node("ScatterND", 18, {x, i64({2, 1}, {0, 0}), updates}, {add}).at(0), {2}, {30000, 1}, 1e-3);
}

// Losses of 300 * 300 and of 100,000 targets, whose mean is 300 and 1.
TEST_F(ConvertHalf, LossesAreAccumulatedInFloat32) {
  const NDArray scores = half({2, 2}, {-300, 0, -500, 0}), targets = i64({2}, {0, 0}), weights = half({2}, {300, 1});
  expect_near(run_node("NegativeLogLikelihoodLoss", 13, {scores, targets, weights}).at(0), {}, {400}, 1e-3);
  const int64_t count = 100000;
  const NDArray many = half({count, 1}, Numbers(static_cast<size_t>(count), -1));
  const NDArray classes = i64({count}, Numbers(static_cast<size_t>(count), 0));
  const Attributes ignoring = {AttributeSpec("ignore_index", 7)};
  expect_near(run_node("NegativeLogLikelihoodLoss", 13, {many, classes}, ignoring).at(0), {}, {1}, 1e-3);
  expect_near(run_node("SoftmaxCrossEntropyLoss", 13, {many, classes}, ignoring).at(0), {}, {0}, 1e-3);
}

}  // namespace
}  // namespace headrace::onnx
