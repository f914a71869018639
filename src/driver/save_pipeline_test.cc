// Files of pipelines: written by the compiler, opened by the runtime.
#include "driver/save_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>
#include <dlfcn.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "artifact/artifact_file.h"
#include "artifact/trailer.h"
#include "base/temporary_name.h"
#include "driver/compile.h"
#include "executors/pipeline/isolation/program_stage.h"
#include "executors/pipeline/plan_spec.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "load/pipeline_file.h"
#include "ops/all_ops.h"
#include "relay/expr.h"

namespace headrace::driver {
namespace {

namespace fs = std::filesystem;
using artifact::PipelineStage;
using executors::pipeline::Pipeline;
using executors::pipeline::Port;
using Kind = artifact::PipelineSource::Kind;
using ::testing::HasSubstr;

constexpr int64_t kElements = 300'000;  // weights that are mapped, not copied: more than 1 MB

NDArray filled(float value) {
  return NDArray::from_vector({kElements}, DataType::float_(32), std::vector<float>(kElements, value));
}

// y = x + c, with a constant of 1.2 MB.
IRModule add_module(float amount) {
  const relay::Var x = relay::make_var("x", make_tensor_type({kElements}, DataType::float_(32)));
  return make_module(relay::make_function({x}, relay::make_call("add", {x, relay::make_constant(filled(amount))})));
}

// A folder, a model in it that adds 1, and its bytes.
class SavePipeline : public ::testing::Test {
 protected:
  SavePipeline() {
    std::string name = temporary_name(::testing::TempDir() + "headrace_pipeline_");
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "pipe.so").string();
    ops::register_all_ops();
    model_ = bytes_of(1);
  }
  ~SavePipeline() override { fs::remove_all(folder_); }

  std::string bytes_of(float amount) const {
    const std::string path = (folder_ / "model.so").string();
    compile_to_file(make_model(add_module(amount)), path, {.threads = 1});
    std::string bytes = kit::read_file(path);
    fs::remove(path);
    return bytes;
  }

  // x -> plus -> again -> y, both by the same model.
  PipelineContent two_stages() const {
    const Port x{.spec = {.name = "x", .dtype = DataType::float_(32), .shape = {kElements}}};
    PipelineContent content;
    content.plan = {.models = {{.name = "plus", .section = ""}, {.name = "again", .section = ""}},
                    .groups = {{.name = "first"}, {.name = "second"}},
                    .inputs = {x},
                    .stages = {{.name = "plus", .model = 0, .sources = {{.kind = Kind::input}}},
                               {.name = "again", .model = 1, .sources = {{.kind = Kind::stage}}, .group = 1}},
                    .outputs = {{.name = "y", .source = {.kind = Kind::stage, .index = 1}}}};
    content.models = {model_, model_};
    return content;
  }

  std::string error_of(PipelineContent content) const {
    const std::string error = kit::user_error_of([&] { save_pipeline(std::move(content), path_); });
    EXPECT_FALSE(fs::exists(path_));
    return error;
  }

  static float first_of(Pipeline& pipeline, float x) {
    const std::vector<Value> results = pipeline.submit({Value(filled(x))}).results();
    return results.at(0).as<NDArray>().data<const float>()[kElements - 1];
  }

  fs::path folder_;
  std::string path_, model_;
};

TEST_F(SavePipeline, TheFileRunsWhereverItIs) {
  const SavedPipeline saved = save_pipeline(two_stages(), path_);
  EXPECT_EQ(saved.nbytes, static_cast<int64_t>(fs::file_size(path_)));
  EXPECT_EQ(saved.plan.models.size(), 1U);  // the two are equal
  EXPECT_EQ(saved.plan.stages[1].inputs.at(0).spec.shape, (std::vector<int64_t>{kElements}));
  EXPECT_LT(saved.nbytes, static_cast<int64_t>(model_.size()) + 40'000);
  const std::string moved = (folder_ / "moved").string();
  fs::rename(path_, moved);
  const std::unique_ptr<Pipeline> pipeline = load::open_pipeline(moved);
  for (const float x : {0.0F, 5.0F}) EXPECT_EQ(first_of(*pipeline, x), x + 2);
  fs::remove(moved);
  EXPECT_EQ(first_of(*pipeline, 7), 9);
}

// The threads of programs, which are started first, do not hide the group.
TEST_F(SavePipeline, AProcessorThatThisMachineLacksIsNamedWithItsGroup) {
  PipelineContent content = two_stages();
  content.plan.groups[1].cpus = {9999};
  save_pipeline(std::move(content), path_);
  EXPECT_THAT(kit::user_error_of([&] { load::open_pipeline(path_); }),
              ::testing::MatchesRegex("processor 9999 was asked for; this process may use [0-9, ]+\n  in: group "
                                      "'second'"));
  EXPECT_EQ(first_of(*load::open_pipeline(path_, {.is_pinned = false}), 5), 7);
}

// The models of a file are mapped from it: two pipelines of one file share their code and weights.
TEST_F(SavePipeline, TwoOpeningsShareTheFile) {
  save_pipeline(two_stages(), path_);
  const std::unique_ptr<Pipeline> first = load::open_pipeline(path_), second = load::open_pipeline(path_);
  EXPECT_EQ(first_of(*first, 1), 3);
  EXPECT_EQ(first_of(*second, 2), 4);
  std::ifstream maps("/proc/self/maps");
  int of_file = 0;
  for (std::string line; std::getline(maps, line);) of_file += line.find(path_) != std::string::npos;
  EXPECT_EQ(of_file, 1);
}

TEST_F(SavePipeline, DifferentModelsAreKept) {
  PipelineContent content = two_stages();
  content.models[1] = bytes_of(10);
  save_pipeline(std::move(content), path_);
  EXPECT_EQ(first_of(*load::open_pipeline(path_), 0), 11);
}

TEST_F(SavePipeline, FunctionsAreFoundInTheProcessOrGiven) {
  PipelineContent content = two_stages();
  const Port any{.spec = {.name = "v", .dtype = {}, .shape = {}}, .is_any = true};
  content.plan.stages[1] = {.name = "again",
                            .function = "test.save_pipeline.twice",
                            .inputs = {any},
                            .outputs = {any},
                            .sources = {{.kind = Kind::stage}},
                            .group = 1};
  save_pipeline(std::move(content), path_);
  EXPECT_THAT(
      kit::user_error_of([&] { load::open_pipeline(path_); }),
      HasSubstr("needs the function 'test.save_pipeline.twice' for its stage 'again', which is not registered"));
  const PackedFunc twice([](Args args) -> Value {
    const NDArray x = args.at<NDArray>(0);
    return Value(filled(2 * x.data<const float>()[0]));
  });
  const auto find = [&](const PipelineStage& stage) {
    return executors::pipeline::make_function_stage(twice, stage.inputs, stage.outputs);
  };
  EXPECT_EQ(first_of(*load::open_pipeline(path_, {.find_stage = find}), 4), 10);
  register_global("test.save_pipeline.twice", twice);
  EXPECT_EQ(first_of(*load::open_pipeline(path_), 5), 12);
}

// The process starts again from the file that was opened, also when that is gone.
TEST_F(SavePipeline, AStageRunsInAProcessOfItsOwn) {
  PipelineContent content = two_stages();
  content.plan.stages[1].isolation = artifact::PipelineIsolation::process;
  content.plan.stages[1].is_pure = true;
  content.plan.stages[1].time_limit_seconds = 60;
  save_pipeline(std::move(content), path_);
  EXPECT_THAT(kit::user_error_of([&] { load::open_pipeline(path_); }),
              HasSubstr("runs its stage 'again' in a process of its own, which this program does not start; link"));
  const std::unique_ptr<Pipeline> pipeline =
      load::open_pipeline(path_, {.make_program_stage = &executors::pipeline::isolation::make_program_stage});
  EXPECT_EQ(first_of(*pipeline, 3), 5);
  fs::remove(path_);
  const auto metrics = [&] { return pipeline->metrics().stages.at(1); };
  EXPECT_TRUE(pipeline->metrics().stages.at(0).pids.empty());
  ASSERT_EQ(::kill(static_cast<pid_t>(metrics().pids.at(0)), SIGKILL), 0);
  EXPECT_EQ(first_of(*pipeline, 4), 6);
  EXPECT_EQ(metrics().restarts, 1U);
  EXPECT_TRUE(pipeline->stop().empty());
  EXPECT_EQ(metrics().pids, std::vector<int64_t>{0});
}

// Somebody with two models may write the second in the place of the output.
TEST_F(SavePipeline, TheNameOfAnotherFileIsRefused) {
  for (const std::string name : {"b.onnx", "frames.npy", "plan.json", "kernels.ll"}) {
    const std::string path = ::testing::TempDir() + name;
    std::ofstream(path) << "mine";
    EXPECT_THAT(kit::user_error_of([&] { save_pipeline(two_stages(), path); }),
                HasSubstr("a pipeline is a shared object; give it a name that ends in .so, as " +
                          name.substr(0, name.find('.')) + ".so"));
    EXPECT_EQ(std::filesystem::file_size(path), 4u);
  }
}

TEST_F(SavePipeline, ContentThatIsNoPipelineIsNamed) {
  PipelineContent content = two_stages();
  content.plan.outputs.clear();
  EXPECT_THAT(error_of(content), HasSubstr("the pipeline has no outputs"));
  content = two_stages();
  content.plan.stages[0].sources = {{.kind = Kind::stage, .index = 1}};
  content.plan.inputs.clear();
  EXPECT_THAT(error_of(content), HasSubstr("stages wait for each other in a circle; it is among: plus, again"));
  content = two_stages();
  content.plan.stages[1].program = "other";
  EXPECT_THAT(error_of(content), HasSubstr("stage 'again' runs the program 'other', which its model does not have"));
  content = two_stages();
  content.plan.inputs[0].spec.shape = {4};
  EXPECT_THAT(error_of(content), HasSubstr("input 'x' of the pipeline is float32 (4), and input 'x' of stage 'plus'"));
  content = two_stages();
  content.plan.stages[0].threads = -3;
  EXPECT_THAT(error_of(content), HasSubstr("stage 'plus' has -3 threads; give 0 or more"));
  content = two_stages();
  content.plan.stages[0].replicas = 1025;
  EXPECT_THAT(error_of(content), HasSubstr("stage 'plus' has 1025 replicas; 1024 are the most"));
  content = two_stages();
  content.plan.groups[1].cpus = {0, -1};
  EXPECT_THAT(error_of(content), HasSubstr("group 1 'second' has the processor -1; give 0 or more"));
  content = two_stages();
  content.plan.groups[1].cpus = {7, 0, 7};
  EXPECT_EQ(error_of(content), "processor 7 is named twice; name it once\n  in: group 'second'");
  content = two_stages();
  content.models[1] = "no artifact";
  EXPECT_THAT(error_of(content), HasSubstr("'again' has 11 bytes, fewer than an artifact's trailer"));
}

// y = x + w for x of (batch, 2) and w of (2).
std::string bytes_of_batch(const fs::path& folder, int64_t batch) {
  const relay::Var x = relay::make_var("x", make_tensor_type({batch, 2}, DataType::float_(32)));
  const relay::Var w = relay::make_var("w", make_tensor_type({2}, DataType::float_(32)));
  const std::string path = (folder / "batch.so").string();
  compile_to_file(make_model(make_module(relay::make_function({x, w}, relay::make_call("add", {x, w})))), path,
                  {.threads = 1});
  std::string bytes = kit::read_file(path);
  fs::remove(path);
  return bytes;
}

// A stage that runs programs for one row and for three.
PipelineContent batch_stage(const fs::path& folder) {
  const auto port = [](std::string name, std::vector<int64_t> shape) {
    return Port{.spec = {.name = std::move(name), .dtype = DataType::float_(32), .shape = std::move(shape)}};
  };
  PipelineContent content;
  content.plan = {
      .models = {{.name = "one", .section = ""}, {.name = "three", .section = ""}},
      .groups = {{.name = "all"}},
      .inputs = {port("x", {1, 2})},
      .stages = {{.name = "plus",
                  .model = 0,
                  .sources = {{.kind = Kind::input}, {.kind = Kind::param}},
                  .batch =
                      artifact::PipelineBatch{.max_batch = 3, .max_delay_seconds = 1000, .others = {{.model = 1}}}}},
      .outputs = {{.name = "y", .source = {.kind = Kind::stage}}},
      .params = {{.group = "g", .port = port("w", {2})}}};
  content.models = {bytes_of_batch(folder, 1), bytes_of_batch(folder, 3)};
  content.first_values = {NDArray::from_vector({2}, DataType::float_(32), std::vector<float>{0.5F, 0.25F})};
  return content;
}

TEST_F(SavePipeline, AStageThatTakesBatches) {
  const SavedPipeline saved = save_pipeline(batch_stage(folder_), path_);
  EXPECT_EQ(saved.plan.stages[0].inputs[0].spec.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(saved.plan.stages[0].inputs[1].spec.shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(saved.plan.stages[0].batch->others[0].program, artifact::kDefaultProgram);
  const std::unique_ptr<Pipeline> pipeline = load::open_pipeline(path_);
  std::vector<executors::pipeline::Ticket> tickets;
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> row{static_cast<float>(i), static_cast<float>(-i)};
    tickets.push_back(pipeline->submit({Value(NDArray::from_vector({1, 2}, DataType::float_(32), row))}));
  }
  for (int i = 0; i < 3; ++i) {
    const NDArray y = tickets[static_cast<size_t>(i)].results().at(0).as<NDArray>();
    EXPECT_EQ(y.shape(), (Shape{1, 2}));
    EXPECT_EQ(y.data<float>()[0], static_cast<float>(i) + 0.5F);
    EXPECT_EQ(y.data<float>()[1], static_cast<float>(-i) + 0.25F);
  }
  EXPECT_EQ(pipeline->metrics().stages[0].batches, 1U);
}

TEST_F(SavePipeline, BatchesThatAreRefused) {
  PipelineContent content = batch_stage(folder_);
  content.plan.stages[0].batch->max_batch = 4;
  EXPECT_THAT(error_of(content),
              HasSubstr("max_batch of stage 'plus' is 4, and the largest batch of its programs is 3"));
  content = batch_stage(folder_);
  content.models[1] = content.models[0];
  EXPECT_THAT(error_of(content), HasSubstr("two programs of the stage have the batch 1"));
  content = batch_stage(folder_);
  content.plan.inputs.push_back(content.plan.params[0].port);
  content.plan.params.clear();
  content.first_values.clear();
  content.plan.stages[0].sources[1] = {.kind = Kind::input, .index = 1};
  EXPECT_THAT(error_of(content),
              HasSubstr("input 'w' of stage 'plus' has no batch as its first dimension; connect it"));
  content = batch_stage(folder_);
  content.plan.stages[0].batch->others[0].program = "other";
  EXPECT_THAT(error_of(content), HasSubstr("stage 'plus' runs the program 'other', which its model does not have"));
}

// A function that the process provides is called with arrays of the requests' values.
TEST_F(SavePipeline, AFunctionThatTakesBatches) {
  const Port any{.spec = {.name = "v", .dtype = {}, .shape = {}}, .is_any = true};
  PipelineContent content;
  content.plan = {.groups = {{.name = "all"}},
                  .inputs = {any},
                  .stages = {{.name = "count",
                              .function = "test.save_pipeline.count",
                              .inputs = {any},
                              .outputs = {any},
                              .sources = {{.kind = Kind::input}},
                              .batch = artifact::PipelineBatch{.max_batch = 2, .max_delay_seconds = 1000}}},
                  .outputs = {{.name = "n", .source = {.kind = Kind::stage}}}};
  save_pipeline(std::move(content), path_);
  register_global("test.save_pipeline.count", make_packed([](Array<Value> values) {
                    Array<Value> counts;
                    for (size_t i = 0; i < values.size(); ++i)
                      counts.push_back(Value(static_cast<int64_t>(values.size())));
                    return counts;
                  }));
  const std::unique_ptr<Pipeline> pipeline = load::open_pipeline(path_);
  const executors::pipeline::Ticket first = pipeline->submit({Value(int64_t{7})});
  EXPECT_EQ(pipeline->submit({Value(int64_t{8})}).results().at(0).as<int64_t>(), 2);
  EXPECT_EQ(first.results().at(0).as<int64_t>(), 2);
}

// x is a parameter.
TEST_F(SavePipeline, FirstValuesHaveTheTypeOfTheirParameter) {
  PipelineContent content = two_stages();
  content.plan.params = {{.group = "g", .port = content.plan.inputs[0]}};
  content.plan.inputs.clear();
  content.plan.stages[0].sources = {{.kind = Kind::param}};
  content.first_values = {NDArray::from_vector({2}, DataType::int_(32), std::vector<int32_t>{1, 2})};
  EXPECT_THAT(error_of(content), HasSubstr("the first value of parameter 'x' of group 'g' is int32 (2), and the stages "
                                           "that read it take float32 (300000)"));
  content.first_values = {filled(3)};
  save_pipeline(std::move(content), path_);
  const std::unique_ptr<Pipeline> pipeline = load::open_pipeline(path_);
  EXPECT_EQ(pipeline->submit(std::vector<Value>{}).results().at(0).as<NDArray>().data<const float>()[0], 5);
}

TEST_F(SavePipeline, AGroupOnAnotherDeviceIsRefused) {
  PipelineContent content = two_stages();
  content.plan.groups[1].location = artifact::parse_location("cuda:0").value();
  save_pipeline(std::move(content), path_);
  EXPECT_THAT(kit::user_error_of([&] { load::open_pipeline(path_); }),
              HasSubstr("group 'second' is on cuda:0, and stages run on cpu:0 alone"));
}

// A file whose trailer fits and one of whose models is damaged, as a program that writes files wrongly makes it.
TEST_F(SavePipeline, ADamagedModelWithinAGoodFileIsRefused) {
  save_pipeline(two_stages(), path_);
  std::string bytes = kit::read_file(path_);
  const size_t model = bytes.find(model_.substr(0, 64), 64);
  ASSERT_NE(model, std::string::npos);
  bytes[model + model_.size() / 2] = static_cast<char>(bytes[model + model_.size() / 2] ^ 1);
  std::vector<uint8_t> file(bytes.begin(), bytes.end() - artifact::kTrailerSize);
  artifact::append_trailer(file);
  kit::write_file(path_, std::string(file.begin(), file.end()));
  EXPECT_THAT(kit::user_error_of([&] { load::open_pipeline(path_); }),
              HasSubstr(": plus' is damaged: its checksum does not match"));
}

// The plan says what a model's inputs and outputs are, and so does the model.
TEST_F(SavePipeline, AModelThatIsNotAsThePlanSaysIsRefused) {
  const SavedPipeline saved = save_pipeline(two_stages(), path_);
  const auto error = [&](const auto& change) {
    artifact::PipelinePlan plan = saved.plan;
    change(plan.stages[0]);
    const std::shared_ptr<const load::Artifact> model = [&] {
      kit::write_file(folder_ / "model.so", model_);
      return load::open_artifact((folder_ / "model.so").string()).value_or_throw();
    }();
    return kit::user_error_of([&] {
      executors::pipeline::spec_of_plan(plan, [&](const PipelineStage&) {
        return executors::pipeline::make_executor_stage(load::make_executor(model, artifact::kDefaultProgram, {}));
      });
    });
  };
  EXPECT_THAT(
      error([](PipelineStage& stage) { stage.inputs[0].spec.shape = {4}; }),
      HasSubstr("input 0 of stage 'plus' is 'x', float32 (4), by the pipeline's plan, and 'x', float32 (300000), "
                "in its program"));
  EXPECT_THAT(error([](PipelineStage& stage) { stage.outputs[0].spec.name = "z"; }),
              HasSubstr("output 0 of stage 'plus' is 'z', float32 (300000), by the pipeline's plan, and 'output0', "));
  EXPECT_THAT(error([](PipelineStage& stage) { stage.outputs.clear(); }),
              HasSubstr("stage 'plus' has 0 outputs by the pipeline's plan, and its program has 1"));
}

TEST_F(SavePipeline, APipelineIsNoModelOfAnother) {
  save_pipeline(two_stages(), path_);
  PipelineContent nested = two_stages();
  nested.models[1] = kit::read_file(path_);
  EXPECT_THAT(kit::user_error_of([&] { save_pipeline(std::move(nested), (folder_ / "nested.so").string()); }),
              HasSubstr("stage 'again' runs the program '', which its model does not have"));
}

TEST_F(SavePipeline, DamagedFilesAreRefused) {
  save_pipeline(two_stages(), path_);
  const std::string good = kit::read_file(path_);
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return kit::user_error_of([&] { load::open_pipeline(path_); });
  };
  for (size_t at = 17; at < good.size(); at += good.size() / 20) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    EXPECT_THAT(refused(bytes), HasSubstr("is damaged: its checksum does not match")) << at;
  }
  EXPECT_THAT(refused(good.substr(0, good.size() / 2)), HasSubstr("does not end in Headrace's trailer"));
}

// A client without the runtime library learns what the file needs.
TEST_F(SavePipeline, BareClientsAreTold) {
  save_pipeline(two_stages(), path_);
  void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto run = reinterpret_cast<headrace_run_function>(::dlsym(library, HR_RUN_SYMBOL));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run(nullptr, 0, nullptr, 0, nullptr), HR_REASON_NEEDS_RUNTIME);
  ::dlclose(library);
}

}  // namespace
}  // namespace headrace::driver
