// Models as pipelines: a split model gives the results of the whole one.
#include "driver/split_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "base/temporary_name.h"
#include "devices/place_stages.h"
#include "driver/cut_stages.h"
#include "driver/register_all.h"
#include "interp/interp.h"
#include "kit/backends.h"
#include "kit/errors.h"
#include "kit/options.h"
#include "kit/random_array.h"
#include "load/pipeline_file.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "partition/backend.h"
#include "relay/bind.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

namespace fs = std::filesystem;
using executors::pipeline::Pipeline;
using ::testing::HasSubstr;

constexpr const char* kModelFolder = HEADRACE_SOURCE_DIR "/models/";

Model parsed(const std::string& text) {
  ops::register_all_ops();
  return make_model(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

// Layers with residual edges, an op with two results, and two outputs; no call reads %unread.
Model residual_model() {
  return parsed(
      "def @main(%x: Tensor[(4, 64), float32], %w: Tensor[(64, 64), float32], %unread: Tensor[(2), float32]) {\n"
      "  %0 = nn.dense(%x, %w, units=64);\n"
      "  %1 = tanh(%0);\n"
      "  %2 = nn.dense(%1, %w, units=64);\n"
      "  %3 = add(%2, %0);\n"
      "  %4 = split(%3, indices_or_sections=2, axis=1);\n"
      "  %5 = nn.dense(nn.relu(%3), %w, units=64);\n"
      "  %6 = concatenate((%4.1, %4.0, %5), axis=1);\n"
      "  (nn.softmax(%6), %4.0)\n"
      "}\n");
}

std::vector<NDArray> inputs_of(const Model& model, uint32_t seed) {
  std::vector<NDArray> inputs;
  for (const relay::Var& param : relay::infer_type(model.module)->lookup("main").as<relay::FunctionNode>()->params) {
    const auto* type = param->checked_type().as<TensorTypeNode>();
    inputs.push_back(kit::random_array(*as_shape(type->shape), seed++));
  }
  return inputs;
}

void expect_close(const NDArray& actual, const NDArray& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (int64_t i = 0; i < actual.num_elements(); ++i)
    ASSERT_NEAR(actual.data<const float>()[i], expected.data<const float>()[i], 1e-4) << i;  // sums of 64 products
}

// A folder of the test's own.
class SplitModelTest : public ::testing::Test {
 protected:
  SplitModelTest() {
    std::string name = temporary_name(::testing::TempDir() + "headrace_split_");
    folder_ = mkdtemp(name.data());
  }
  ~SplitModelTest() override { fs::remove_all(folder_); }

  // Saves and loads the pipeline, and compares its results with those of the whole model, for some requests.
  void expect_same_results(const Model& model, SplitModel split) const {
    const std::string path = (folder_ / "pipe.so").string();
    const SavedPipeline saved = save_pipeline(std::move(split.content), path);
    const std::unique_ptr<Pipeline> pipeline = load::open_pipeline(path, {.place_stages = &devices::place_stages});
    const auto whole = load::make_executor(open_compiled(compile_to_memory(model), "whole"), "default", {.threads = 1});
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      const std::vector<NDArray> inputs = inputs_of(model, 10 * seed);
      std::vector<Value> given;
      for (const artifact::PipelinePort& port : saved.plan.inputs) {
        const auto at = std::find(model.inputs.begin(), model.inputs.end(), port.name());
        given.emplace_back(inputs.at(static_cast<size_t>(at - model.inputs.begin())));
      }
      const std::vector<NDArray> expected = load::run(*whole, inputs);
      const std::vector<Value> results = pipeline->submit(given).results();
      ASSERT_EQ(results.size(), expected.size());
      for (size_t i = 0; i < results.size(); ++i) expect_close(results[i].as<NDArray>(), expected[i]);
    }
  }

  fs::path folder_;
};

TEST_F(SplitModelTest, AnyNumberOfStagesGivesTheSameResults) {
  const Model model = residual_model();
  for (int32_t stages = 1; stages <= 4; ++stages) {
    SplitModel split = split_model(model, {}, {.stages = stages, .replans = 1, .rounds = 2});
    EXPECT_LE(split.plan.stages.size(), static_cast<size_t>(stages));
    EXPECT_EQ(split.seconds.size(), split.plan.stages.size());
    expect_same_results(model, std::move(split));
  }
}

// Three equal products: each may have a stage of its own, and no more are made.
TEST_F(SplitModelTest, EachProductGetsAStage) {
  const Model model = parsed(
      "def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {\n"
      "  nn.dense(tanh(nn.dense(tanh(nn.dense(%x, %w, units=256)), %w, units=256)), %w, units=256)\n"
      "}\n");
  for (int32_t stages = 1; stages <= 3; ++stages) {
    SplitModel split = split_model(model, {}, {.stages = stages, .replans = -1});
    EXPECT_EQ(split.plan.stages.size(), static_cast<size_t>(stages));
    expect_same_results(model, std::move(split));
  }
  const SplitModel measured = split_model(model, {}, {.stages = 2, .replans = 2, .rounds = 3});
  ASSERT_EQ(measured.seconds.size(), 2U);
  EXPECT_LE(measured.num_plans, 3);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(static_cast<double>(measured.plan.stages[i].compute_ns), measured.seconds[i] * 1e9, 1);
  EXPECT_LE(measured.plan.lower_bound_ns, measured.plan.period_ns);
}

TEST_F(SplitModelTest, ANetworkOfOnnx) {
  ops::register_all_ops();
  const Model model =
      load_model(std::string(kModelFolder) + "digits.onnx", {.shapes = {{"x", {2, 1, 8, 8}}}, .bound = {}});
  SplitModel split = split_model(model, {}, {.stages = 2, .replans = -1});
  EXPECT_TRUE(split.seconds.empty());
  EXPECT_EQ(split.content.plan.outputs.at(0).name, model.outputs.at(0));
  expect_same_results(model, std::move(split));
}

// Returns stages without gaps, at most three, such that no tensor leads to an earlier one.
std::vector<int32_t> random_cut(const StraightLine& line, std::mt19937& random) {
  std::vector<int32_t> cut;
  for (size_t i = 0; i < line.calls.size(); ++i) {
    int32_t least = 0;
    for (const auto& arg : line.args[i]) {
      for (const ProgramTensor& tensor : arg)
        least = std::max(least, tensor.kind == ProgramTensor::Kind::call ? cut[tensor.owner] : 0);
    }
    cut.push_back(std::min(least + static_cast<int32_t>(random() % 2), 2));
  }
  std::vector<int32_t> used(cut);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (int32_t& stage : cut)
    stage = static_cast<int32_t>(std::lower_bound(used.begin(), used.end(), stage) - used.begin());
  return cut;
}

TEST_F(SplitModelTest, AnyCutGivesTheSameResults) {
  Model model = residual_model();
  model.module = relay::infer_type(model.module);
  const StraightLine line = read_straight_line(model.module);
  ASSERT_EQ(line.calls.size(), 9U);
  std::mt19937 random(7);
  std::set<std::vector<int32_t>> cuts;
  while (cuts.size() < 12) cuts.insert(random_cut(line, random));
  for (size_t number = 0; const std::vector<int32_t>& cut : cuts) {
    if (!kit::is_chosen(number++)) continue;
    const CutProgram program = cut_stages(model, line, cut);
    SplitModel split;
    split.content.plan.inputs = program.inputs;
    split.content.plan.outputs = program.outputs;
    for (size_t i = 0; i < program.stages.size(); ++i) {
      const std::string name = fmt::format("s{}", i);
      split.content.models.push_back(
          open_compiled(compile_to_memory(program.stages[i].model), name)->library->bytes().value_or_throw());
      split.content.plan.models.push_back({.name = name, .section = ""});
      split.content.plan.groups.push_back({.name = name});
      split.content.plan.stages.push_back({.name = name,
                                           .model = static_cast<int32_t>(i),
                                           .sources = program.stages[i].sources,
                                           .group = static_cast<int32_t>(i)});
    }
    expect_same_results(model, std::move(split));
  }
}

// A result that is an input, or a constant, comes from the last stage.
TEST_F(SplitModelTest, ResultsThatNothingComputes) {
  const Model model =
      parsed("def @main(%x: Tensor[(3), float32]) { (exp(tanh(%x)), %x, const(Tensor[(2), float32], [1, 2])) }\n");
  expect_same_results(model, split_model(model, {}, {.stages = 2, .replans = 0, .rounds = 1}));
}

// Without the passes that remove them, calls that nothing reads are left out.
TEST_F(SplitModelTest, CallsThatNothingReads) {
  const Model model = parsed(
      "def @main(%x: Tensor[(4, 64), float32], %w: Tensor[(64, 64), float32], %v: Tensor[(64, 64), float32]) {\n"
      "  %0 = (nn.dense(%x, %w, units=64), nn.dense(%x, %v, units=64), const(Tensor[(2), float32], [1, 2]));\n"
      "  tanh(%0.0)\n"
      "}\n");
  SplitModel split = split_model(model, {.passes = {.opt_level = 0}}, {.stages = 2, .replans = -1});
  EXPECT_EQ(split.problem.nodes.size(), 2U);
  EXPECT_EQ(split.content.plan.inputs.size(), 2U);
  expect_same_results(model, std::move(split));
}

// No pass of level 0 removes them.
TEST_F(SplitModelTest, LetsAtAnyLevel) {
  const Model model =
      parsed("def @main(%x: Tensor[(3), float32]) { let %a = exp(%x); let %b = tanh(%a); add(%a, %b) }\n");
  for (const int level : {0, 3})
    expect_same_results(model, split_model(model, {.passes = {.opt_level = level}}, {.stages = 2, .replans = -1}));
}

// Stages are measured on the processors that they will run on.
TEST_F(SplitModelTest, AFileIsWrittenWithTheProcessorsOfItsStages) {
  std::string name = temporary_name(::testing::TempDir() + "headrace_split_");
  const std::string folder = mkdtemp(name.data());
  const Model model = parsed("def @main(%x: Tensor[(64, 64), float32]) { tanh(exp(%x)) }\n");
  const SplitFile file = split_to_file(model, folder + "/pipe.so", {}, {.cpus = {{0}, {0}}, .replans = 0, .rounds = 1});
  EXPECT_EQ(file.nbytes, static_cast<int64_t>(std::filesystem::file_size(folder + "/pipe.so")));
  EXPECT_EQ(file.split.seconds.size(), file.split.content.plan.stages.size());
  EXPECT_EQ(file.split.content.plan.groups[0].cpus, std::vector<int32_t>{0});
  EXPECT_GT(report_of(file).at("predicted_per_second").as<double>(), 0);
  bool has_begun = false;
  EXPECT_THAT(kit::user_error_of([&] {
                split_to_file(model, folder + "/nowhere/pipe.so", {},
                              {.progress = [&](const auto&) { has_begun = true; }});
              }),
              HasSubstr("nowhere"));
  EXPECT_FALSE(has_begun);
  std::filesystem::remove_all(folder);
}

// The C code of ccompiler, as if it took a nanosecond a call.
class Quick : public partition::Backend {
 public:
  std::string_view name() const override { return "quick_split_test"; }
  partition::Verdict supports(const relay::CallNode& call) const override { return code_->supports(call); }
  double cost(const relay::CallNode&, const cost::Machine&, int) const override { return 1e-9; }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    return code_->compile(request);
  }

 private:
  std::shared_ptr<const partition::Backend> code_ = partition::find_backend("ccompiler");
};

// Each place has a product; the sums go to the place that is fast at them, wherever it stands in the list.
TEST_F(SplitModelTest, PlacesHaveBackendsOfTheirOwn) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  register_all();
  partition::register_backend(std::make_shared<Quick>());
  const Model model = parsed(
      "def @main(%x: Tensor[(256, 256), float32], %w: Tensor[(256, 256), float32]) {\n"
      "  nn.dense(add(add(add(nn.dense(%x, %w, units=256), %w), %w), %x), %w, units=256)\n"
      "}\n");
  for (const int32_t quick : {0, 1}) {
    SplitModelOptions options{.stages = 2, .backends = {{}, {}}, .replans = -1};
    options.backends[static_cast<size_t>(quick)] = {"quick_split_test"};
    SplitModel split = split_model(model, {}, options);
    ASSERT_EQ(split.plan.stages.size(), 2U);
    for (const size_t sum : {1, 2, 3}) {
      const auto stage = static_cast<size_t>(split.plan.stage_of_node[sum]);
      EXPECT_EQ(split.plan.stages[stage].devices, std::vector<int32_t>{quick});
      EXPECT_EQ(split.content.plan.stages[stage].backend, "quick_split_test, native");
      EXPECT_EQ(split.content.plan.stages[1 - stage].backend, "native");
    }
    expect_same_results(model, std::move(split));
  }
  SplitModel measured =
      split_model(model, {}, {.stages = 2, .backends = {{"quick_split_test"}, {}}, .replans = 2, .rounds = 2});
  EXPECT_EQ(measured.seconds.size(), measured.plan.stages.size());
  expect_same_results(model, std::move(measured));
}

TEST_F(SplitModelTest, ASlowStageHasReplicas) {
  const Model model = parsed(
      "def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) { nn.dense(%x, %w, units=256) }\n");
  SplitModel split = split_model(model, {}, {.stages = 3, .cpus = {{0}, {0}, {0}}, .replicas = 2, .replans = -1});
  ASSERT_EQ(split.plan.stages.size(), 1U);
  EXPECT_EQ(split.plan.stages[0].devices.size(), 2U);
  EXPECT_EQ(split.plan.period_ns, (split.plan.stages[0].time_ns + 1) / 2);
  EXPECT_EQ(split.content.plan.stages[0].replicas, 2);
  EXPECT_EQ(split.content.plan.groups[0].cpus, std::vector<int32_t>{0});
  expect_same_results(model, std::move(split));
  const SplitModel measured = split_model(model, {}, {.stages = 2, .replicas = 2, .replans = 1, .rounds = 2});
  EXPECT_EQ(measured.plan.period_ns, (measured.plan.stages[0].time_ns + 1) / 2);
}

// Each product has weights of 256 KiB.
TEST_F(SplitModelTest, StagesFitTheMemoryOfTheirPlaces) {
  std::string weights;
  for (const char* name : {"u", "v", "w"}) weights += fmt::format(", %{}: Tensor[(256, 256), float32]", name);
  const Model open = parsed("def @main(%x: Tensor[(1, 256), float32]" + weights +
                            ") {\n  nn.dense(nn.dense(nn.dense(%x, %u), %v), %w)\n}\n");
  Map<std::string, NDArray> values;
  for (const char* name : {"u", "v", "w"})
    values.set(name, kit::random_array({256, 256}, 3 + static_cast<uint32_t>(values.size())));
  const auto main = open.module->lookup("main").cast<relay::FunctionNode>();
  const Model model = make_model(make_module(relay::bind_params_by_name(main, values)));
  SplitModel split = split_model(model, {}, {.stages = 3, .memory_bytes = {600 << 10}, .replans = -1});
  for (const plan::SplitStage& stage : split.plan.stages) EXPECT_LE(stage.memory_bytes, 600 << 10);
  EXPECT_GE(split.plan.stages.size(), 2U);
  expect_same_results(model, std::move(split));
  EXPECT_EQ(split_model(model, {}, {.stages = 3, .memory_bytes = {300 << 10}, .replans = -1}).plan.stages.size(), 3U);
  EXPECT_THAT(kit::user_error_of([&] {
                split_model(model, {}, {.stages = 2, .memory_bytes = {300 << 10, 300 << 10}, .replans = -1});
              }),
              HasSubstr("memory"));
}

// The second product makes 256 KiB. A split behind it has them in two slots, and the first product's 64 KiB alone in
// working memory beside 1,280 KiB of weights: 1,856 KiB. Any other split has a stage with two products of 1,024 KiB.
TEST_F(SplitModelTest, TensorsInSlotsAreNotWorkingMemory) {
  const Model open = parsed(
      "def @main(%x: Tensor[(64, 256), float32], %a: Tensor[(256, 256), float32], %b: Tensor[(1024, 256), float32],\n"
      "          %c: Tensor[(256, 1024), float32], %d: Tensor[(256, 256), float32]) {\n"
      "  %0 = tanh(nn.dense(tanh(nn.dense(%x, %a, units=256)), %b, units=1024));\n"
      "  nn.dense(tanh(nn.dense(%0, %c, units=256)), %d, units=256)\n"
      "}\n");
  Map<std::string, NDArray> values;
  for (const auto& [name, shape] :
       {std::pair("a", Shape{256, 256}), {"b", Shape{1024, 256}}, {"c", Shape{256, 1024}}, {"d", Shape{256, 256}}})
    values.set(name, kit::random_array(shape, 7 + static_cast<uint32_t>(values.size())));
  const auto main = open.module->lookup("main").cast<relay::FunctionNode>();
  const Model model = make_model(make_module(relay::bind_params_by_name(main, values)));
  const SplitModel split = split_model(model, {}, {.stages = 2, .memory_bytes = {1900 << 10}, .replans = -1});
  ASSERT_EQ(split.plan.stages.size(), 2U);
  for (const plan::SplitStage& stage : split.plan.stages) EXPECT_LE(stage.memory_bytes, 1900 << 10);
}

// One kernel computes all calls, and its result lies with the caller.
TEST_F(SplitModelTest, CallsOfOneKernelTakeNoWorkingMemory) {
  const Model model = parsed("def @main(%x: Tensor[(64, 256), float32]) { tanh(exp(nn.relu(%x))) }\n");
  const SplitModel split = split_model(model, {}, {.stages = 1, .memory_bytes = {1}, .replans = -1});
  EXPECT_EQ(split.plan.stages.at(0).memory_bytes, 0);
}

TEST_F(SplitModelTest, StagesInProcessesOfTheirOwn) {
  const SplitModel split = split_model(residual_model(), {},
                                       {.stages = 2, .isolation = artifact::PipelineIsolation::process, .replans = -1});
  for (const artifact::PipelineStage& stage : split.content.plan.stages) {
    EXPECT_EQ(stage.isolation, artifact::PipelineIsolation::process);
    EXPECT_TRUE(stage.is_pure) << "the ops of a model may run again";
  }
}

TEST_F(SplitModelTest, ProgramsThatCannotBeSplitAreNamed) {
  const auto error = [](const std::string& text, const SplitModelOptions& options = {}) {
    return kit::user_error_of([&] { split_model(parsed(text), {}, options); });
  };
  const std::string loop = "def @main(%x: Tensor[(3), float32], %c: bool) { if (%c) { exp(%x) } else { tanh(%x) } }\n";
  EXPECT_THAT(error(loop), HasSubstr("a program with relay.If cannot be split into stages; only calls of ops"));
  EXPECT_THAT(error("def @main(%x: Tensor[(n), float32]) { exp(%x) }\n"),
              HasSubstr("a value of the type Tensor[(n), float32] has no known size"));
  EXPECT_THAT(error("def @main(%t: (Tensor[(3), float32], Tensor[(3), float32])) { add(%t.0, %t.1) }\n"),
              HasSubstr("parameter %t is a tuple, and stages take tensors"));
  EXPECT_THAT(error("def @main(%x: Tensor[(3), float32]) { %x }\n"), HasSubstr("the model computes nothing"));
  const std::string good = "def @main(%x: Tensor[(3), float32]) { exp(%x) }\n";
  EXPECT_THAT(error(good, {.stages = 0}), HasSubstr("0 stages were asked for; ask for 1 to 64"));
  EXPECT_THAT(error(good, {.threads = 0}), HasSubstr("0 threads for a stage were asked for"));
  EXPECT_THAT(error(good, {.rounds = 0}), HasSubstr("0 rounds were asked for"));
  EXPECT_THAT(kit::user_error_of([&] { split_model(parsed(good), {.plan = "plan.json"}, {}); }),
              HasSubstr("a plan (--plan) says where the ops of a whole model go"));
  EXPECT_THAT(kit::user_error_of([&] { split_model(parsed(good), {.overrides = {{}}}, {}); }),
              HasSubstr("single ops are placed (--place) in a whole model"));
  EXPECT_THAT(error(good, {.cpus = {{0}}}), HasSubstr("processors are given for 1 stages, and there are 2"));
  EXPECT_THAT(
      error(good, {.cpus = {{0}, {99'999}}}),
      ::testing::MatchesRegex("processor 99999 was asked for; this process may use [0-9, ]+\n  in: cpus\\[1\\]"));
  EXPECT_EQ(error(good, {.cpus = {{0}, {0, 0}}}), "processor 0 is named twice; name it once\n  in: cpus[1]");
  EXPECT_EQ(error(good, {.cpus = {{}, {0}}}),
            "cpus[0]: it is empty; name processors of that place, or give no place any, so that all run anywhere");
  EXPECT_THAT(error(good, {.backends = {{}}}), HasSubstr("backends are given for 1 stages, and there are 2"));
  EXPECT_THAT(error(good, {.backends = {{}, {"nobody"}}}), HasSubstr("there is no backend 'nobody'"));
  EXPECT_THAT(error(good, {.stages = 3, .memory_bytes = {1, 2}}), HasSubstr("memory is given for 2 stages"));
  EXPECT_THAT(error(good, {.memory_bytes = {0}}), HasSubstr("the memory of a stage is 0 bytes; it is at least 1"));
  EXPECT_THAT(error(good, {.replicas = 3}),
              HasSubstr("3 replicas were asked for; each takes a place, so ask for 1 to 2"));
}

TEST_F(SplitModelTest, OptionsOfABackendAreForAStageThatHasIt) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  const char* two_products =
      "def @main(%x: Tensor[(8, 8), float32], %w: Tensor[(8, 8), float32]) {\n"
      "  nn.dense(nn.dense(%x, %w, units=8), %w, units=8)\n}\n";
  CompileOptions with_cc;
  with_cc.backend_options["ccompiler"].set("cc", Value(std::string("cc")));
  EXPECT_THAT(kit::user_error_of([&] { split_model(parsed(two_products), with_cc, {.replans = -1}); }),
              HasSubstr("the options of the backend 'ccompiler' have no effect, because no stage has it"));
  split_model(parsed(two_products), with_cc, {.backends = {{"ccompiler"}, {}}, .replans = -1});  // one place has it
}

// ---- Simulated devices.

std::optional<devices::SimulatedDevice> device(const char* text) { return devices::parse_simulated_device(text); }

// Three products with a small tensor between them.
Model three_products() {
  return parsed(
      "def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {\n"
      "  nn.dense(tanh(nn.dense(tanh(nn.dense(%x, %w, units=256)), %w, units=256)), %w, units=256)\n"
      "}\n");
}

TEST_F(SplitModelTest, ASlowDeviceGetsLess) {
  SplitModel split =
      split_model(three_products(), {}, {.stages = 2, .devices = {{}, device("sim:1(speed=0.5)")}, .replans = -1});
  ASSERT_EQ(split.plan.stages.size(), 2U);
  const auto work_of = [&](size_t stage) {
    const plan::SplitStage& one = split.plan.stages[stage];
    const plan::SplitDevice& on = split.problem.devices[static_cast<size_t>(one.devices[0])];
    return std::pair(on.name, static_cast<double>(one.compute_ns) * (on.name == "sim:1" ? 0.5 : 1));
  };
  std::map<std::string, double> work{work_of(0), work_of(1)};
  EXPECT_NEAR(work["stage0"] / work["sim:1"], 2, 0.3);  // two products and one, with a tanh on one side
  expect_same_results(three_products(), std::move(split));
}

// The inputs and the output of the model, twice each, take 768 KiB of the memory.
TEST_F(SplitModelTest, LinksAndMemoryBoundTheSplit) {
  const auto devices_of = [&](const char* text, const Model& model = three_products()) {
    const SplitModel split = split_model(model, {}, {.stages = 2, .devices = {{}, device(text)}, .replans = -1});
    std::vector<std::string> names;
    for (const plan::SplitStage& stage : split.plan.stages)
      names.push_back(split.problem.devices[static_cast<size_t>(stage.devices[0])].name);
    return names;
  };
  EXPECT_EQ(devices_of("sim:1(speed=100)"), (std::vector<std::string>{"sim:1"}));
  EXPECT_EQ(devices_of("sim:1(latency=1s)"), (std::vector<std::string>{"stage0"}));
  EXPECT_EQ(devices_of("sim:1(speed=100, memory=800KiB)"), (std::vector<std::string>{"stage0"}));
  EXPECT_THAT(
      kit::user_error_of([&] { devices_of("sim:1(memory=1KiB)"); }),
      HasSubstr("sim:1 has 1KiB of memory, which 384KiB of the model's inputs and outputs, 2 times each, fill"));
  // Two results of products are in working memory at a time.
  EXPECT_EQ(devices_of("sim:1(speed=100, memory=896KiB)"), (std::vector<std::string>{"sim:1"}));
  EXPECT_EQ(devices_of("sim:1(speed=100, memory=895KiB)"), (std::vector<std::string>{"stage0"}));
  // %0 stays in working memory while %2 is made of %1.
  const Model skip = parsed(
      "def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {\n"
      "  %0 = tanh(nn.dense(%x, %w, units=256));\n"
      "  %1 = tanh(nn.dense(%0, %w, units=256));\n"
      "  %2 = tanh(nn.dense(%1, %w, units=256));\n"
      "  add(nn.dense(%2, %w, units=256), %0)\n"
      "}\n");
  EXPECT_EQ(devices_of("sim:1(speed=100, memory=960KiB)", skip), (std::vector<std::string>{"sim:1"}));
  EXPECT_EQ(devices_of("sim:1(speed=100, memory=959KiB)", skip), (std::vector<std::string>{"sim:1", "stage0"}));
  // The planner does not count the results of a split.
  const Model parts = parsed(
      "def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {\n"
      "  %0 = split(tanh(nn.dense(%x, %w, units=256)), indices_or_sections=2, axis=0);\n"
      "  add(nn.dense(%0.0, %w, units=256), nn.dense(%0.1, %w, units=256))\n"
      "}\n");
  EXPECT_THAT(kit::user_error_of([&] { devices_of("sim:1(speed=100, memory=710KiB)", parts); }),
              HasSubstr("KiB of them for weights and working memory, and it has 710KiB; give it more memory"));
}

// Tensors pass stages by, the link of each device, and the two outputs.
TEST_F(SplitModelTest, TheMemoryOfStagesIsThatOfTheirDevices) {
  SplitModel split =
      split_model(residual_model(), {},
                  {.stages = 3, .devices = {device("sim:0"), device("sim:1"), device("sim:2")}, .replans = -1});
  ASSERT_EQ(split.plan.stages.size(), 3U);
  const std::string path = (folder_ / "pipe.so").string();
  save_pipeline(std::move(split.content), path);
  devices::PlacedStages placed;
  const auto pipeline = load::open_pipeline(
      path, {.place_stages = [&](const auto& plan, auto& spec) { placed = devices::place_stages(plan, spec); }});
  ASSERT_EQ(placed.devices.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(split.plan.stages[i].memory_bytes, placed.devices[i]->bytes_in_use()) << i;
}

// The first product is read by both that follow it, so it has four slots of 64 KiB, and the second one has two.
TEST_F(SplitModelTest, MemoryHoldsTheSlotsOfSkipEdges) {
  const Model model = parsed(
      "def @main(%x: Tensor[(64, 256), float32], %w: Tensor[(256, 256), float32]) {\n"
      "  %0 = nn.dense(%x, %w, units=256);\n"
      "  %1 = nn.dense(%0, %w, units=256);\n"
      "  add(nn.dense(%1, %w, units=256), %0)\n"
      "}\n");
  const auto split_with = [&](int64_t memory) {
    return split_model(model, {}, {.stages = 3, .memory_bytes = {memory}, .replans = -1});
  };
  const SplitModel wide = split_with(1 << 20);
  ASSERT_EQ(wide.plan.stages.size(), 3U);
  EXPECT_GE(wide.plan.stages[1].memory_bytes, (4 + 2) * (64 << 10));
  // With two slots of each tensor, three stages would take 320 KiB of this at most, with a product as working memory.
  const SplitModel narrow = split_with(380 << 10);
  EXPECT_LT(narrow.plan.stages.size(), 3U);
  for (const plan::SplitStage& stage : narrow.plan.stages) EXPECT_LE(stage.memory_bytes, 380 << 10);
}

TEST_F(SplitModelTest, DevicesThatCannotBeAreRefused) {
  const auto refused = [&](SplitModelOptions options) {
    options.replans = -1;
    return kit::user_error_of([&] { split_model(three_products(), {}, options); });
  };
  EXPECT_EQ(refused({.devices = {device("sim:1")}}), "devices are given for 1 stages, and there are 2");
  EXPECT_THAT(refused({.devices = {device("sim:1"), device("sim:1")}}), HasSubstr("two stages are on sim:1"));
  EXPECT_THAT(refused({.devices = {{}, device("sim:1")}, .replicas = 2}), HasSubstr("replicas are for processors"));
}

// A list of devices that names none is as no list.
TEST_F(SplitModelTest, ProcessorsAloneAreNoDevices) {
  const std::string path = (folder_ / "pipe.so").string();
  const SplitFile file =
      split_to_file(three_products(), path, {}, {.stages = 2, .devices = {{}, {}}, .replicas = 2, .replans = -1});
  for (const plan::SplitDevice& one : file.split.problem.devices) EXPECT_FALSE(one.overlaps) << one.name;
  size_t replicas = 0;
  for (const plan::SplitStage& stage : file.split.plan.stages) replicas = std::max(replicas, stage.devices.size());
  ASSERT_EQ(replicas, 2U);
  // Both replicas of the one stage work at a time, for nearly the whole stream.
  const double alone = 1e9 / static_cast<double>(file.split.plan.stages[0].compute_ns);
  EXPECT_GT(file.simulation.requests_per_second, 1.5 * alone);
}

// The simulator has the transfers that the pipeline runs with, and predicts its throughput. The transfers of x and w
// take longest by far, so that the prediction does not depend on this machine.
TEST_F(SplitModelTest, ThePredictionIsThatOfTheRun) {
  const std::string path = (folder_ / "pipe.so").string();
  const SplitFile file = split_to_file(
      three_products(), path, {},
      {.stages = 2, .devices = {device("sim:0(latency=4ms)"), device("sim:1(latency=8ms)")}, .replans = -1});
  const std::unique_ptr<Pipeline> pipeline = load::open_pipeline(path, {.place_stages = &devices::place_stages});
  const std::vector<NDArray> inputs = inputs_of(three_products(), 1);
  std::vector<Value> given;
  for (const artifact::PipelinePort& port : file.split.content.plan.inputs)
    given.emplace_back(inputs.at(port.name() == "x" ? 0 : 1));
  constexpr int kRequests = 30;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<executors::pipeline::Ticket> tickets;
  for (int i = 0; i < kRequests; ++i) tickets.push_back(pipeline->submit(given));
  for (const auto& ticket : tickets) ticket.results();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // One stage is best, on the first device: x and w take 4 ms each, one after the other.
  EXPECT_NEAR(1 / file.simulation.requests_per_second, 8e-3, 1e-4);
  EXPECT_GE(seconds, kRequests * 8e-3);
  // On a busy machine transfers end later. The link works nearly all the time nevertheless, so it bounds the run, too.
  double busy = 0;
  for (const auto& stage : pipeline->metrics().stages)
    busy += stage.name.ends_with(" to sim:0") ? static_cast<double>(stage.busy_ns) * 1e-9 : 0;
  EXPECT_GE(busy, 0.7 * seconds);
}

}  // namespace
}  // namespace headrace::driver
