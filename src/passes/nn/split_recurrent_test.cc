// SplitRecurrent.
#include "passes/nn/split_recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kit/property.h"
#include "kit/random.h"
#include "ops/nn/recurrent.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// A layer: its program, and arguments for it.
struct RandomLayer {
  std::string program;
  std::vector<NDArray> args;
  int64_t steps = 0;
};

void add_tensor(RandomLayer& layer, kit::Random& random, const Shape& shape, DataType dtype) {
  const NDArray data = NDArray::empty(shape, dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i)
    set_element(data.tensor(), i, static_cast<double>(random.uniform(-1, 1)));
  layer.program += fmt::format("{}%a{}: Tensor[({}), {}]", layer.args.empty() ? "" : ", ", layer.args.size(),
                               fmt::join(shape, ", "), dtype);
  layer.args.push_back(data);
}

void add_lengths(RandomLayer& layer, kit::Random& random, int64_t batch) {
  const NDArray lengths = NDArray::empty({batch}, DataType::int_(32));
  for (int64_t i = 0; i < batch; ++i) set_element_int(lengths.tensor(), i, random.integer(0, layer.steps));
  layer.program += fmt::format(", %a4: Tensor[({}), int32]", batch);
  layer.args.push_back(lengths);
}

// Sizes, direction and attributes by chance.
RandomLayer random_layer(kit::Random& random, DataType dtype) {
  const size_t cell = random.index(3);
  const int64_t gates = ops::gates_of(static_cast<ops::RecurrentCell>(cell));
  const char* const direction = std::array{"forward", "reverse", "bidirectional"}[random.index(3)];
  const int64_t d = std::string_view(direction) == "bidirectional" ? 2 : 1, t = random.integer(1, 4);
  const int64_t b = random.integer(1, 5), i = random.integer(1, 5), h = random.integer(1, 21);
  RandomLayer layer{.program = "def @main(", .args = {}, .steps = t};
  for (const Shape& shape : {Shape{t, b, i}, Shape{d, gates * h, i}, Shape{d, gates * h, h}, Shape{d, 2 * gates * h}})
    add_tensor(layer, random, shape, dtype);
  add_lengths(layer, random, b);
  add_tensor(layer, random, {d, b, h}, dtype);
  if (cell == 0) {
    add_tensor(layer, random, {d, b, h}, dtype);
    add_tensor(layer, random, {d, 3 * h}, dtype);
  }
  layer.program += fmt::format(") {{ nn.{}(%a0, %a1, %a2, %a3, %a4, %a5{}, direction=\"{}\"{}) }}",
                               std::array{"lstm", "gru", "rnn"}[cell], cell == 0 ? ", %a6, %a7" : "", direction,
                               random.chance(0.5) ? ", linear_before_reset=True, clip=0.7f64" : "");
  return layer;
}

TEST(SplitRecurrent, RandomLayersKeepTheResults) {
  kit::Property<RandomLayer> property;
  property.runs_ci = 60;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    return random_layer(random, DataType::float_(random.chance(0.2F) ? 16 : 32));
  };
  property.show = [](const RandomLayer& layer) { return layer.program; };
  property.check = [](const RandomLayer& layer) -> std::optional<std::string> {
    const IRModule before = read(layer.program), after = run_pass("SplitRecurrent", before);
    if (count_calls(after, "nn.recurrent_steps") != 1) return "it is not split";
    if (count_calls(after, "nn.dense") != 1) return "there is not one product for all steps and directions";
    const bool is_half = layer.args[0].dtype() == DataType::float_(16);
    return difference_of_results(before, after, layer.args, is_half ? 1e-3 : 1e-5);
  };
  EXPECT_TRUE(kit::holds(property));
}

constexpr const char* kStacked =
    "def @main(%x: Tensor[(3, 2, 4), float32], %w: Tensor[(1, 4, 4), float32], %b: Tensor[(1, 8), float32],\n"
    "    %l: Tensor[(2), int32], %h: Tensor[(1, 2, 4), float32]) {{\n"
    "  %0 = nn.rnn(%x, %w, %w, %b, {0}, %h);\n"
    "  %1 = squeeze(%0.0, axis=[1]);\n"
    "  nn.rnn(%1, %w, %w, %b, {0}, %h)\n}}";

// The operands of the second layer have no types when the first is replaced.
TEST(SplitRecurrent, SplitsLayersThatFollowEachOther) {
  const IRModule before = read(fmt::format(kStacked, "%l")), after = run_pass("SplitRecurrent", before);
  EXPECT_EQ(count_calls(after, "nn.recurrent_steps"), 2);
  const NDArray lengths = NDArray::from_vector<int32_t>({2}, DataType::int_(32), {3, 1});
  const auto small = [](const Shape& shape) {
    NDArray array = ramp(shape, -1);
    for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] /= 16;
    return array;
  };
  expect_same_results(before, after, {small({3, 2, 4}), small({1, 4, 4}), small({1, 8}), lengths, small({1, 2, 4})});
}

// Returns the steps of the module, in the order of evaluation.
std::vector<const ops::RecurrentStepsAttrs*> steps_of(const IRModule& module) {
  std::vector<const ops::RecurrentStepsAttrs*> found;
  relay::post_order(module->lookup("main"), [&](const Expr& node) {
    const auto* call = node.as<relay::CallNode>();
    if (call == nullptr || call->as_op() == nullptr || call->as_op()->name != "nn.recurrent_steps") return;
    found.push_back(&call->attrs_as<ops::RecurrentStepsAttrs>());
  });
  return found;
}

TEST(SplitRecurrent, KnowsThatSequencesHaveAllSteps) {
  const auto found = [](const char* lengths) {
    const IRModule after = run_pass("SplitRecurrent", read(fmt::format(kStacked, lengths)));
    const auto steps = steps_of(after);
    return std::count_if(steps.begin(), steps.end(), [](const auto* attrs) { return attrs->all_steps; });
  };
  EXPECT_EQ(found("const(Tensor[(2), int32], [3, 3])"), 2);
  EXPECT_EQ(found("const(Tensor[(2), int32], [3, 2])"), 0);
  EXPECT_EQ(found("%l"), 0);
}

// Registers decide how many rows of a batch share the weights: 16 of 8 lanes hold the 4 gates of 3 rows, 32 of 16 lanes
// those of 7. Parts are of about one size.
TEST(SplitRecurrent, RowsFitTheRegisters) {
  const auto rows = [](const cost::Machine& machine, int64_t batch, std::string_view lengths) {
    const IRModule module = read(fmt::format(
        "def @main(%x: Tensor[(3, {0}, 4), float32], %w: Tensor[(1, 64, 4), float32],\n"
        "    %r: Tensor[(1, 64, 16), float32], %b: Tensor[(1, 128), float32], %h: Tensor[(1, {0}, 16), float32],\n"
        "    %p: Tensor[(1, 48), float32], %l: Tensor[({0}), int32]) {{\n"
        "  nn.lstm(%x, %w, %r, %b, {1}, %h, %h, %p)\n}}",
        batch, lengths));
    const IRModule after = split_recurrent(module, machine);
    return steps_of(after).at(0)->rows;
  };
  const cost::Machine small{.vector_bits = 256, .vector_registers = 16};
  const cost::Machine large{.vector_bits = 512, .vector_registers = 32};
  const std::string_view all = "const(Tensor[(9), int32], [3, 3, 3, 3, 3, 3, 3, 3, 3])";
  EXPECT_EQ(rows(small, 9, all), 3);
  EXPECT_EQ(rows(large, 9, all), 5);
  EXPECT_EQ(rows(large, 9, "%l"), 1) << "sequences of unlike lengths run one by one";
  EXPECT_EQ(rows(small, 1, "const(Tensor[(1), int32], [3])"), 1);
  EXPECT_EQ(rows(small, 4, "const(Tensor[(4), int32], [3, 3, 3, 3])"), 2);
}

// Without a size, or without anything to multiply, the layer stays.
TEST(SplitRecurrent, LeavesLayersAlone) {
  for (const auto& [steps, inputs] : {std::pair("n", "4"), {"0", "4"}, {"3", "0"}, {"?", "4"}}) {
    const IRModule module =
        read(fmt::format("def @main(%x: Tensor[({0}, 2, {1}), float32], %w: Tensor[(1, 4, {1}), float32],\n"
                         "    %r: Tensor[(1, 4, 4), float32], %b: Tensor[(1, 8), float32], %l: Tensor[(2), int32],\n"
                         "    %h: Tensor[(1, 2, 4), float32]) {{ nn.rnn(%x, %w, %r, %b, %l, %h) }}",
                         steps, inputs));
    EXPECT_EQ(run_pass("SplitRecurrent", module), module) << steps << " steps of " << inputs;
  }
}

}  // namespace
}  // namespace headrace::passes
