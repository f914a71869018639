// Operators that draw random numbers: shapes, dtypes, ranges and moments that the specification promises; which key.
#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;

constexpr int64_t kDrawn = 40000;

std::vector<double> elements_of(const NDArray& data) {
  std::vector<double> elements;
  for (int64_t i = 0; i < data.num_elements(); ++i) elements.push_back(element_as_double(data.tensor(), i));
  return elements;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double element : x) sum += element;
  return sum / static_cast<double>(x.size());
}

double deviation_of(const std::vector<double>& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (const double element : x) sum += (element - mean) * (element - mean);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

NDArray drawn(std::string_view op, const Attributes& attributes, const std::vector<Operand>& operands = {}) {
  return run_node(op, 15, operands, attributes).at(0);
}

// The mean of 40,000 numbers is within 5 deviations of it, sd / 200, with a probability of 1 - 6e-7; the numbers are
// the same in each run.
TEST(ConvertRandom, MomentsOfTheNormal) {
  const auto x = elements_of(drawn("RandomNormal", {AttributeSpec("shape", Ints{200, 200}), AttributeSpec("mean", 3.0F),
                                                    AttributeSpec("scale", 2.0F), AttributeSpec("seed", 1.5F)}));
  ASSERT_EQ(x.size(), kDrawn);
  EXPECT_NEAR(mean_of(x), 3, 5 * 2.0 / 200);
  EXPECT_NEAR(deviation_of(x), 2, 5 * 2.0 / 200);
  const auto near = std::count_if(x.begin(), x.end(), [](double v) { return std::abs(v - 3) < 2; });
  EXPECT_NEAR(static_cast<double>(near) / kDrawn, 0.6827, 0.012);  // within one deviation
}

TEST(ConvertRandom, RangeOfTheUniform) {
  const auto x = elements_of(drawn("RandomUniform", {AttributeSpec("shape", Ints{kDrawn}), AttributeSpec("low", -1.0F),
                                                     AttributeSpec("high", 3.0F)}));
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -1);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 3);
  EXPECT_NEAR(mean_of(x), 1, 5 * 4 / std::sqrt(12.0) / 200);
  EXPECT_NEAR(deviation_of(x), 4 / std::sqrt(12.0), 0.02);
  EXPECT_EQ(std::set<double>(x.begin(), x.end()).size() > 39900, true);
}

TEST(ConvertRandom, ShapesAndDtypes) {
  EXPECT_EQ(drawn("RandomNormal", {AttributeSpec("shape", Ints{2, 0, 3})}).shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(drawn("RandomUniform", {AttributeSpec("shape", Ints{})}).shape(), Shape());
  for (const auto& [number, dtype] : {std::pair(1, DataType::float_(32)),
                                      {10, DataType::float_(16)},
                                      {11, DataType::float_(64)},
                                      {16, DataType::bfloat16()}}) {
    const Attributes attributes{AttributeSpec("shape", Ints{3}), AttributeSpec("dtype", number)};
    EXPECT_EQ(drawn("RandomNormal", attributes).dtype(), dtype);
    EXPECT_EQ(drawn("RandomUniform", attributes).dtype(), dtype);
    const NDArray like =
        drawn("RandomUniformLike", {AttributeSpec("dtype", number)}, {i64({2, 3}, {0, 0, 0, 0, 0, 0})});
    EXPECT_EQ(like.dtype(), dtype);
    EXPECT_EQ(like.shape(), (Shape{2, 3}));
  }
  const NDArray half = make_array({4}, {0, 0, 0, 0}, DataType::float_(16));
  EXPECT_EQ(drawn("RandomNormalLike", {}, {half}).dtype(), DataType::float_(16));
  EXPECT_EQ(drawn("RandomUniformLike", {}, {half}).dtype(), DataType::float_(16));
  EXPECT_EQ(drawn("Bernoulli", {}, {half}).dtype(), DataType::float_(16));
  EXPECT_EQ(drawn("Bernoulli", {AttributeSpec("dtype", 9)}, {half}).dtype(), DataType::bool_());
}

TEST(ConvertRandom, ASeedSaysTheNumbersAndNamesDoWithoutOne) {
  const auto numbers = [](std::vector<AttributeSpec> attributes) {
    attributes.emplace_back("shape", Ints{8});
    return elements_of(drawn("RandomUniform", attributes));
  };
  EXPECT_EQ(numbers({AttributeSpec("seed", 2.0F)}), numbers({AttributeSpec("seed", 2.0F)}));
  EXPECT_NE(numbers({AttributeSpec("seed", 2.0F)}), numbers({AttributeSpec("seed", 3.0F)}));
  EXPECT_NE(numbers({AttributeSpec("seed", 0.0F)}), numbers({}));
  EXPECT_EQ(numbers({}), numbers({}));
  GraphWriter graph;
  for (const char* name : {"a", "b"}) {
    graph.node_with_outputs("RandomUniform", {}, {name}, {AttributeSpec("shape", Ints{8})});
    graph.output(name, ElementType::kUndefined);
  }
  const auto both = interp::run_main(import_graph(std::move(graph), 15).module, {});
  EXPECT_NE(elements_of(both.at(0)), elements_of(both.at(1)));
}

TEST(ConvertRandom, BernoulliIsOneAsOftenAsItsProbabilitySays) {
  std::vector<double> p(kDrawn, 0.25);
  const auto x = elements_of(drawn("Bernoulli", {AttributeSpec("seed", 7.0F)}, {f32({kDrawn}, p)}));
  EXPECT_EQ(std::set<double>(x.begin(), x.end()), (std::set<double>{0, 1}));
  EXPECT_NEAR(mean_of(x), 0.25, 5 * std::sqrt(0.25 * 0.75) / 200);
  for (const DataType dtype : {DataType::float_(32), DataType::float_(64), DataType::float_(16)})
    EXPECT_EQ(elements_of(drawn("Bernoulli", {}, {make_array({4}, {0, 1, 0, 1}, dtype)})),
              (std::vector<double>{0, 1, 0, 1}));
}

TEST(ConvertRandom, MultinomialTakesLogarithms) {
  const double inf = INFINITY;
  const NDArray logs = f32({2, 3}, {std::log(1.0), std::log(3.0), -inf, 5, -inf, -inf});
  const NDArray x = drawn("Multinomial", {AttributeSpec("sample_size", kDrawn), AttributeSpec("dtype", 7)}, {logs});
  EXPECT_EQ(x.dtype(), DataType::int_(64));
  EXPECT_EQ(x.shape(), (Shape{2, kDrawn}));
  const auto indices = elements_of(x);
  const std::vector<double> first(indices.begin(), indices.begin() + kDrawn),
      second(indices.begin() + kDrawn, indices.end());
  EXPECT_EQ(std::set<double>(first.begin(), first.end()), (std::set<double>{0, 1}));
  EXPECT_NEAR(mean_of(first), 0.75, 5 * std::sqrt(0.25 * 0.75) / 200);
  EXPECT_EQ(std::set<double>(second.begin(), second.end()), std::set<double>{0});
  const NDArray one = drawn("Multinomial", {}, {make_array({1, 2}, {0, 1}, DataType::float_(16))});
  EXPECT_EQ(one.shape(), (Shape{1, 1}));
  EXPECT_EQ(one.dtype(), DataType::int_(32));
}

TEST(ConvertRandom, DropoutInTrainingDropsAndScales) {
  const NDArray x = f32({kDrawn}, std::vector<double>(kDrawn, 3));
  const Operand on = fixed(boolean({}, {1}));
  const auto out = run_node("Dropout", 13, {x, fixed(f32({}, {0.25})), on}, {AttributeSpec("seed", 1)}, 2);
  const auto y = elements_of(out.at(0)), mask = elements_of(out.at(1));
  EXPECT_EQ(out[1].dtype(), DataType::bool_());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], mask[i] != 0 ? 4.0 : 0.0) << i;
  EXPECT_NEAR(mean_of(mask), 0.75, 5 * std::sqrt(0.25 * 0.75) / 200);
  // Half of them, unless the ratio says else; NaN and infinity are dropped as other numbers are.
  const NDArray nan = f32({kDrawn}, std::vector<double>(kDrawn, NAN));
  const auto half = elements_of(run_node("Dropout", 12, {nan, Operand(), on}).at(0));
  const auto zeros = std::count(half.begin(), half.end(), 0.0);
  EXPECT_NEAR(static_cast<double>(zeros) / kDrawn, 0.5, 5 * 0.5 / 200);
  const NDArray few = f32({2}, {1, 2});
  expect_near(run_node("Dropout", 13, {few, fixed(f32({}, {0})), on}).at(0), {2}, {1, 2}, 0);
  expect_near(run_node("Dropout", 13, {few, fixed(f32({}, {0.5})), fixed(boolean({}, {0}))}).at(0), {2}, {1, 2}, 0);
  EXPECT_THAT(node_error("Dropout", 13, {few, fixed(f32({}, {1})), on}),
              HasSubstr("its ratio is 1, expected 0 to less"));
  EXPECT_THAT(node_error("Dropout", 13, {few, fixed(f32({}, {0.5})), boolean({}, {1})}), HasSubstr("training_mode"));
}

TEST(ConvertRandom, MalformedNodesAreReported) {
  const NDArray x = f32({1, 2}, {0, 1}), whole = i64({2}, {0, 1});
  const auto error = [](std::string_view op, const Attributes& attributes, const std::vector<Operand>& operands = {}) {
    return node_error(op, 15, operands, attributes);
  };
  EXPECT_THAT(error("RandomNormal", {}), HasSubstr("attribute 'shape' is missing"));
  EXPECT_THAT(error("RandomNormal", {AttributeSpec("shape", Ints{-1})}), HasSubstr("its shape has the size -1"));
  EXPECT_THAT(error("RandomUniform", {AttributeSpec("shape", Ints{2}), AttributeSpec("dtype", 7)}),
              HasSubstr("its numbers would be int64; attribute 'dtype' names a floating-point type"));
  EXPECT_THAT(error("RandomUniform", {AttributeSpec("shape", Ints{2}), AttributeSpec("dtype", -1)}),
              HasSubstr("attribute 'dtype' is -1, which is not an element type"));
  EXPECT_THAT(error("RandomUniform", {AttributeSpec("shape", Ints{2}), AttributeSpec("dtype", 8)}),
              HasSubstr("numbers of string are not supported"));
  EXPECT_THAT(error("RandomNormalLike", {}, {whole}), HasSubstr("its numbers would be int64"));
  EXPECT_THAT(error("Bernoulli", {}, {whole}), HasSubstr("floating point"));
  EXPECT_THAT(error("Multinomial", {}, {f32({2}, {0, 1})}), HasSubstr("its input has 1 dimensions"));
  EXPECT_THAT(error("Multinomial", {AttributeSpec("dtype", 1)}, {x}), HasSubstr("'dtype' names int32 or int64"));
  EXPECT_THAT(error("Multinomial", {AttributeSpec("sample_size", -1)}, {x}), HasSubstr("'sample_size' is -1"));
}

}  // namespace
}  // namespace headrace::onnx
