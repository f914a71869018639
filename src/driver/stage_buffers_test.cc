// The planner's working memory of a stage is never more than what the compiled stage takes.
#include "driver/stage_buffers.h"

#include <gtest/gtest.h>

#include <map>

#include "driver/canonical.h"
#include "driver/cut_stages.h"
#include "driver/register_all.h"
#include "driver/split_problem.h"
#include "driver/target.h"
#include "kit/property.h"
#include "kit/random_array.h"
#include "load/artifact.h"
#include "passes/forms/to_graph_normal_form.h"
#include "plan/pipeline/contract.h"
#include "relay/bind.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::driver {
namespace {

// A program in which each value has one shape, and the stage of each of its calls after the canonical passes.
struct CutCase {
  std::string text;
  bool has_constants = false;  // its weights are constants
  uint64_t seed = 0;           // seed of the stages
  int64_t most_stages = 3;
};

struct BufferShape {
  std::string_view type;
  std::vector<std::string_view> parameters;
  std::vector<std::string_view> calls;  // calls of one or two values, $a and $b
};

const std::vector<BufferShape>& buffer_shapes() {
  static const std::vector<BufferShape> shapes{
      {"(32, 32), float32",
       {"%w: Tensor[(32, 32), float32]", "%v: Tensor[(32, 64), float32]", "%z: Tensor[(32), float32]"},
       {"tanh($a)",
        "nn.relu($a)",
        "add($a, $b)",
        "multiply($a, $b)",
        "add($a, %z)",
        "nn.dense($a, %w, units=32)",
        "nn.dense($a, $b, units=32)",
        "nn.softmax($a)",
        "transpose($a)",
        "reshape(reshape($a, newshape=[1024]), "
        "newshape=[32, 32])",
        "nn.relu(reshape(tanh(reshape($a, newshape=[16, 64])), newshape=[32, 32]))",
        "nn.dense(concatenate(($a, $b), axis=1), %v, units=32)",
        "strided_slice(concatenate(($a, $b), axis=0), "
        "begin=[16, 0], end=[48, 32], strides=[1, 1])",
        "add(sum($a, axis=[1], keepdims=True), $b)",
        "cast(cast($a, dtype=\"int8\"), dtype=\"float32\")",
        "cast(nn.dense(cast(cast($a, dtype=\"float16\"), "
        "dtype=\"float32\"), %w, units=32), dtype=\"float32\")",
        "max($a, axis=[0, 1], keepdims=True) + $b",
        "where(less($a, $b), $a, tanh($b))",
        "cumsum($a, axis=0)",
        "expand_dims(sum($a, axis=[0]), axis=0) + $b"}},
      {"(2, 8, 12, 12), float32",
       {"%w: Tensor[(8, 8, 3, 3), float32]", "%v: Tensor[(8, 16, 1, 1), float32]", "%z: Tensor[(8), float32]"},
       {"nn.conv2d($a, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3])", "nn.relu($a)", "add($a, $b)",
        "nn.bias_add($a, %z)", "nn.max_pool2d($a, pool_size=[3, 3], padding=[1, 1, 1, 1])", "tanh($a)",
        "nn.conv2d(concatenate(($a, $b), axis=1), %v, channels=8, kernel_size=[1, 1])",
        "nn.relu(nn.bias_add(nn.conv2d($a, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]), %z))",
        "multiply($a, sigmoid(nn.global_avg_pool2d($b)))", "nn.avg_pool2d($a, pool_size=[3, 3], padding=[1, 1, 1, 1])",
        "transpose(transpose($a, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])", "nn.leaky_relu($a, alpha=0.1f)"}}};
  return shapes;
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

CutCase random_cut_case(kit::Random& random) {
  const BufferShape& shape = buffer_shapes()[random.index(buffer_shapes().size())];
  std::string text = fmt::format("def @main(%x: Tensor[{}]", shape.type);
  for (const std::string_view parameter : shape.parameters) text += fmt::format(", {}", parameter);
  text += ") {\n";
  std::vector<std::string> values{"%x"};
  for (int64_t i = random.integer(3, 12); i > 0; --i) {
    const auto value = [&] { return values[random.chance(0.6F) ? values.size() - 1 : random.index(values.size())]; };
    const std::string call(shape.calls[random.index(shape.calls.size())]);
    const std::string name = fmt::format("%{}", values.size() - 1);
    text += fmt::format("  {} = {};\n", name, replaced(replaced(call, "$a", value()), "$b", value()));
    values.push_back(name);
  }
  const bool has_two = random.chance(0.3F);
  text += has_two ? fmt::format("  ({}, {})\n}}\n", values.back(), values[random.index(values.size())])
                  : fmt::format("  {}\n}}\n", values.back());
  return {.text = text, .has_constants = random.chance(0.5F), .seed = random.next()};
}

Model model_of(const CutCase& one) {
  const IRModule module = relay::parse_module("#[version = \"0.0.5\"]\n" + one.text);
  if (!one.has_constants) return make_model(module);
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  Map<std::string, NDArray> weights;
  for (size_t i = 1; i < main->params.size(); ++i) {
    const auto* type = main->params[i]->type_annotation.as<TensorTypeNode>();
    weights.set(main->params[i]->name_hint, kit::random_array(*as_shape(type->shape), static_cast<uint32_t>(i)));
  }
  return make_model(make_module(relay::bind_params_by_name(main, weights)));
}

// Gives each call a stage that is not before those that it reads.
std::vector<int32_t> random_stages(kit::Random& random, const StraightLine& line, int64_t most) {
  const auto count = static_cast<int32_t>(random.integer(1, most));
  const bool in_order = random.chance(0.6F);
  std::vector<int32_t> stages;
  for (size_t i = 0; i < line.calls.size(); ++i) {
    int32_t low = in_order && i > 0 ? stages.back() : 0;
    for (const auto& arg : line.args[i]) {
      for (const ProgramTensor& tensor : arg) {
        if (tensor.kind == ProgramTensor::Kind::call) low = std::max(low, stages[tensor.owner]);
      }
    }
    stages.push_back(random.chance(0.7F) ? low : static_cast<int32_t>(random.integer(low, count - 1)));
  }
  std::map<int32_t, int32_t> numbers;
  for (const int32_t stage : stages) numbers.emplace(stage, 0);
  for (int32_t next = 0; auto& [stage, number] : numbers) number = next++;
  for (int32_t& stage : stages) stage = numbers.at(stage);
  return stages;
}

// The working memory of stages, by the planner and as compiled.
struct StageArenas {
  std::vector<int64_t> planned{}, compiled{};
  std::vector<std::string> programs{};
};

StageArenas arenas_of(const CutCase& one, const CompileOptions& compile) {
  Model model = model_of(one);
  model.module = run_canonical_passes(passes::to_graph_normal_form(model.module),
                                      make_relay_context(compile, [](const pass::PassNote&) {}));
  const StraightLine line = read_straight_line(model.module);
  if (line.calls.empty()) return {};
  kit::Random random(one.seed);
  const std::vector<int32_t> stages = random_stages(random, line, one.most_stages);
  const Places places = make_places(compile, {});
  const plan::SplitProblem problem = make_split_problem(line, cost::Machine{}, places, {});
  const plan::ContractedProblem contracted = plan::contract_problem(problem);
  std::vector<int32_t> stage_of_unit(static_cast<size_t>(contracted.graph.num_units));
  for (size_t i = 0; i < stages.size(); ++i) stage_of_unit[static_cast<size_t>(contracted.unit_of_node[i])] = stages[i];
  const auto count = static_cast<size_t>(*std::max_element(stages.begin(), stages.end())) + 1;
  StageArenas arenas{
      .planned = plan::working_memory(contracted.graph.buffers, contracted.graph.working_bytes, stage_of_unit, count)};
  for (CutStage& stage : cut_stages(model, line, stages).stages) {
    arenas.programs.push_back(relay::print_module(stage.model.module));
    const auto artifact = open_compiled(compile_to_memory(std::move(stage.model), compile), "stage");
    arenas.compiled.push_back(artifact::arena_bytes(artifact->manifest().programs.at(0).memory));
  }
  return arenas;
}

TEST(StageBuffers, NeedNoMoreThanTheCompiledStage) {
  register_all();
  int64_t planned = 0, compiled = 0;
  kit::Property<CutCase> property;
  property.runs_ci = 30;
  property.runs_full = 1000;
  property.generate = random_cut_case;
  property.show = [](const CutCase& one) { return fmt::format("constants {}\n{}", one.has_constants, one.text); };
  property.check = [&](const CutCase& one) -> std::optional<std::string> {
    for (const int opt_level : {3, 4}) {
      const StageArenas arenas = arenas_of(one, {.passes = {.opt_level = opt_level}, .threads = 1});
      for (size_t i = 0; i < arenas.planned.size(); ++i) {
        planned += arenas.planned[i];
        compiled += arenas.compiled[i];
        if (arenas.planned[i] > arenas.compiled[i])
          return fmt::format("a stage takes {} bytes and was planned with {}:\n{}", arenas.compiled[i],
                             arenas.planned[i], arenas.programs[i]);
      }
    }
    return {};
  };
  EXPECT_TRUE(kit::holds(property));
  RecordProperty("share", fmt::format("{:.3f}", static_cast<double>(planned) / static_cast<double>(compiled)));
}

// Products with small results: two are in memory at a time, and a third one where it is read later.
TEST(StageBuffers, AreWhatAChainOfKernelsTakes) {
  register_all();
  const std::string head = "def @main(%x: Tensor[(32, 32), float32], %w: Tensor[(32, 32), float32]) {\n";
  const std::string product = "tanh(nn.dense({}, %w, units=32))";
  const std::string three =
      fmt::format("  %0 = {};\n  %1 = {};\n  %2 = {};\n", fmt::format(fmt::runtime(product), "%x"),
                  fmt::format(fmt::runtime(product), "%0"), fmt::format(fmt::runtime(product), "%1"));
  for (const auto& [end, tensors] : {std::pair("nn.dense(%2, %w, units=32)", 2),
                                     {"add(nn.dense(%2, %w, units=32), %0)", 3},
                                     {"nn.softmax(add(nn.dense(%2, %w, units=32), %1))", 3}}) {
    const StageArenas arenas =
        arenas_of({.text = head + three + "  " + end + "\n}\n", .most_stages = 1}, {.threads = 1});
    EXPECT_EQ(arenas.planned, std::vector<int64_t>{tensors * 32 * 32 * 4}) << end;
    EXPECT_EQ(arenas.compiled, arenas.planned) << end;
  }
}

// Alone at the end of a stage, an op that mostly serves a broadcast makes a view: what it reads is the stage's output.
TEST(StageBuffers, TheBaseOfAnOutputViewLiesInItsSlot) {
  register_all();
  const StageArenas arenas = arenas_of({.text = "def @main(%x: Tensor[(16, 64), float32]) {\n"
                                                "  %0 = reshape(tanh(%x), newshape=[32, 32]);\n"
                                                "  expand_dims(sum(nn.relu(%0), axis=[0]), axis=0)\n"
                                                "}\n",
                                        .most_stages = 1},
                                       {.threads = 1});
  EXPECT_EQ(arenas.planned, std::vector<int64_t>{16 * 64 * 4});
  EXPECT_EQ(arenas.compiled, arenas.planned);
}

}  // namespace
}  // namespace headrace::driver
