// The memory of stages: by hand, against the sizes in the files of their models.
#include "driver/pipeline_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "devices/place_stages.h"
#include "driver/compile.h"
#include "driver/save_pipeline.h"
#include "executors/pipeline/isolation/program_stage.h"
#include "load/artifact.h"
#include "load/pipeline_file.h"
#include "ops/all_ops.h"
#include "relay/expr.h"

namespace headrace::driver {
namespace {

using artifact::Manifest;
using artifact::PipelinePlan;
using Kind = artifact::PipelineSource::Kind;

constexpr int64_t kColumns = 300, kRowBytes = kColumns * 4;

// y = x + c for x of (batch, 300): the constant has as many bytes as a row.
std::shared_ptr<const load::Artifact> model_of_batch(int64_t batch) {
  ops::register_all_ops();
  const DataType dtype = DataType::float_(32);
  const relay::Var x = relay::make_var("x", make_tensor_type({batch, kColumns}, dtype));
  const auto row = NDArray::from_vector({kColumns}, dtype, std::vector<float>(kColumns, 1));
  const auto function = relay::make_function({x}, relay::make_call("add", {x, relay::make_constant(row)}));
  return open_compiled(compile_to_memory(make_model(make_module(function)), {.threads = 1}), "model");
}

artifact::PipelinePort row_port(const std::string& name) {
  return {.spec = {.name = name, .dtype = DataType::float_(32), .shape = {1, kColumns}}};
}

// A stage that adds rows, for one at a time or, with `others`, for up to four.
PipelinePlan plan_of(std::vector<artifact::PipelineProgram> others) {
  PipelinePlan plan{.models = {{.name = "one", .section = ""}, {.name = "four", .section = ""}},
                    .groups = {{.name = "all"}},
                    .inputs = {row_port("x")}};
  plan.stages = {{.name = "plus",
                  .model = 0,
                  .program = artifact::kDefaultProgram,
                  .inputs = {row_port("x")},
                  .outputs = {row_port("y")},
                  .sources = {{.kind = Kind::input}}}};
  if (!others.empty()) plan.stages[0].batch = artifact::PipelineBatch{.max_batch = 4, .others = std::move(others)};
  plan.outputs = {{.name = "y", .source = {.kind = Kind::stage}}};
  return plan;
}

// Returns the working memory that a file gives for one thread of its first program.
int64_t working_bytes_of(const Manifest& manifest) {
  int64_t bytes = manifest.programs[0].memory.workspace_bytes;
  for (const artifact::Arena& arena : manifest.programs[0].memory.arenas) bytes += arena.nbytes;
  return bytes;
}

TEST(PipelineMemory, WeightsCountOnceForAllBatchesOfAnArtifact) {
  const auto one = model_of_batch(1), four = model_of_batch(4);
  ASSERT_EQ(one->manifest().weights.size(), 1U);
  ASSERT_EQ(one->manifest().weights[0].nbytes, kRowBytes);
  const int64_t working = working_bytes_of(one->manifest()) + working_bytes_of(four->manifest());
  const int64_t of_batches = (1 + 4) * 2 * kRowBytes;  // inputs and outputs
  const std::vector<const Manifest*> two{&one->manifest(), &four->manifest()};

  const StageMemory alone = memory_of_stages(plan_of({}), two).at(0);
  EXPECT_EQ(alone.program_bytes, working_bytes_of(one->manifest()) + kRowBytes);
  EXPECT_EQ(alone.slot_bytes, 0) << "no other stage reads or writes its tensors";

  const StageMemory of_two = memory_of_stages(plan_of({{.model = 1, .program = artifact::kDefaultProgram}}), two).at(0);
  EXPECT_EQ(of_two.program_bytes, working + 2 * kRowBytes + of_batches) << "each artifact has its own";

  Manifest both = one->manifest();
  both.programs.push_back(four->manifest().programs[0]);
  both.programs.back().name = "four";
  const std::vector<const Manifest*> shared{&both, &four->manifest()};
  const StageMemory of_one = memory_of_stages(plan_of({{.model = 0, .program = "four"}}), shared).at(0);
  EXPECT_EQ(of_one.program_bytes, working + kRowBytes + of_batches);
}

// a -> b -> a function, which reads a, too.
TEST(PipelineMemory, ASkipEdgeHasItsSlots) {
  const auto one = model_of_batch(1);
  PipelinePlan plan = plan_of({});
  plan.groups = {{.name = "0"}, {.name = "1"}, {.name = "2"}};
  plan.stages.push_back(plan.stages[0]);
  plan.stages[1].name = "second";
  plan.stages[1].group = 1;
  plan.stages[1].sources = {{.kind = Kind::stage, .index = 0}};
  plan.stages.push_back({.name = "join",
                         .function = "join",
                         .inputs = {row_port("a"), row_port("b"), row_port("c")},
                         .outputs = {row_port("y")},
                         .sources = {{.kind = Kind::stage, .index = 0},
                                     {.kind = Kind::stage, .index = 1},
                                     {.kind = Kind::stage, .index = 0}},
                         .group = 2});
  plan.outputs[0].source.index = 2;
  const std::vector<const Manifest*> manifests{&one->manifest(), &one->manifest()};
  const auto rows_of = [&](size_t stage) { return memory_of_stages(plan, manifests).at(stage).slot_bytes / kRowBytes; };
  EXPECT_EQ(rows_of(0), 4);
  EXPECT_EQ(rows_of(1), 4 + 2);
  EXPECT_EQ(rows_of(2), 4 + 2) << "a tensor that is read twice has its slots once";
  EXPECT_EQ(memory_of_stages(plan, manifests).at(2).program_bytes, 0);
  plan.max_inflight = 2;
  EXPECT_EQ(rows_of(0), 2 + 1) << "no more than requests, and one that has failed before";
}

// Returns two stages on a simulated device that run one model, with a tensor between them.
PipelinePlan two_stages_on_a_device(artifact::PipelineIsolation isolation) {
  PipelinePlan plan = plan_of({});
  plan.models.pop_back();
  plan.groups[0].location = devices::plan_location(devices::parse_simulated_device("sim:0"));
  plan.stages[0].isolation = isolation;
  plan.stages.push_back(plan.stages[0]);
  plan.stages[1].name = "again";
  plan.stages[1].sources = {{.kind = Kind::stage, .index = 0}};
  plan.outputs[0].source.index = 1;
  return plan;
}

// Returns the bytes of the device that the pipeline of such a plan takes while it runs.
int64_t bytes_in_use(const PipelinePlan& plan, const std::shared_ptr<const load::Artifact>& model) {
  const std::string path = ::testing::TempDir() + fmt::format("headrace_memory_{}.so", ::getpid());
  save_pipeline({.plan = plan, .models = {model->library->bytes().value_or_throw()}, .first_values = {}}, path);
  devices::PlacedStages placed;
  const auto pipeline = load::open_pipeline(
      path, {.make_program_stage = &executors::pipeline::isolation::make_program_stage,
             .place_stages = [&](const auto& of_file, auto& spec) { placed = devices::place_stages(of_file, spec); }});
  std::filesystem::remove(path);
  return placed.devices.at(0)->bytes_in_use();
}

constexpr int64_t kTwoSlots = 2 * ((kRowBytes + 63) / 64 * 64);  // for the tensor between two stages on a device

TEST(PipelineMemory, StagesOfOneModelShareItsWeightsOnADevice) {
  const auto one = model_of_batch(1);
  const PipelinePlan plan = two_stages_on_a_device(artifact::PipelineIsolation::thread);
  const std::vector<const Manifest*> manifests{&one->manifest()};
  const std::vector<DeviceMemory> devices = memory_of_devices(plan, manifests);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices::name_of(devices[0].device), "sim:0");
  EXPECT_EQ(devices[0].nbytes, bytes_in_use(plan, one));
  // Each stage by itself has the weight and the tensor between them.
  const std::vector<StageMemory> stages = memory_of_stages(plan, manifests);
  EXPECT_EQ(stages[0].program_bytes, working_bytes_of(one->manifest()) + kRowBytes);
  EXPECT_EQ(devices[0].nbytes, stages[0].total() + stages[1].total() - kRowBytes - kTwoSlots);
  EXPECT_TRUE(memory_of_devices(plan_of({}), std::vector{&one->manifest(), &one->manifest()}).empty());
}

TEST(PipelineMemory, AStageInAProcessHasItsOwnWeightsOnADevice) {
  const auto one = model_of_batch(1);
  const PipelinePlan plan = two_stages_on_a_device(artifact::PipelineIsolation::process);
  const std::vector<const Manifest*> manifests{&one->manifest()};
  const int64_t nbytes = memory_of_devices(plan, manifests).at(0).nbytes;
  EXPECT_EQ(nbytes, bytes_in_use(plan, one));
  const std::vector<StageMemory> stages = memory_of_stages(plan, manifests);
  EXPECT_EQ(nbytes, stages[0].total() + stages[1].total() - kTwoSlots);
}

}  // namespace
}  // namespace headrace::driver
