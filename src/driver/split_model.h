// Splits a model into the stages of a pipeline whose slowest stage is as fast as possible.
#pragma once

#include "devices/simulated_device.h"
#include "driver/compile.h"
#include "driver/save_pipeline.h"
#include "plan/pipeline/simulate.h"
#include "plan/pipeline/split.h"

namespace headrace::driver {

struct SplitModelOptions {
  // Places for stages, at most so many stages; each has a thread, or `threads` of them, and processors of its own.
  int32_t stages = 2;
  int32_t threads = 1;
  // Processors per place, which may share some; empty: any for all places.
  std::vector<std::vector<int32_t>> cpus = {};
  // The backends of each place, by their priority; native for an empty list. Empty: all have those of the compile.
  std::vector<std::vector<std::string>> backends = {};
  // The memory that a stage may take in each place (driver/pipeline_memory.h); one number holds for all. Empty: any.
  std::vector<int64_t> memory_bytes = {};
  // Simulated devices of places; nothing for one on this machine's processors. Empty: none. A stage is measured here
  // and takes 1 / speed of that there, tensors pass the links while stages compute, and the device's memory bounds a
  // stage as `memory_bytes` does.
  std::vector<std::optional<devices::SimulatedDevice>> devices = {};
  int32_t replicas = 1;  // at most so many of a stage, each in a place of its own; requests go to them in turns
  artifact::PipelineIsolation isolation = artifact::PipelineIsolation::thread;  // where all stages run
  // The time of calls is estimated by the sizes of tensors at first. Then each stage is measured, the times of its
  // calls are corrected, and the model is split again, at most so often; the split whose slowest stage took least is
  // kept.
  int32_t replans = 3;
  int32_t rounds = 10;  // rounds of measuring per stage; the best one counts
  int32_t max_inflight = 16;
  // Called before each piece of work, such as "compile stage 1 of 2". May be empty.
  std::function<void(const std::string& what)> progress = {};
};

struct SplitModel {
  PipelineContent content;      // for save_pipeline
  plan::SplitProblem problem;   // the calls of the model, with corrected times, and the stages' places
  plan::SplitPlan plan;         // its memory is that of the compiled stages
  std::vector<double> seconds;  // measured time per stage; empty where `replans` is negative
  int32_t num_plans = 1;        // splits that were tried
};

// Splits the model after the canonical passes and compiles each stage as `compile` says, but for its threads. Stages
// are measured one after another, on their processors. A `replans` of 0 measures the first split, a negative one
// measures nothing. The result has fewer stages than asked for where more would not be faster. Throws UserError for a
// program that is not a straight line (read_straight_line) or has values of unknown size, numbers out of range,
// a place with no processors, one of them twice or one that this process may not use, memory that holds no split or not
// what a stage takes once it is compiled, two places on one device, replicas beside devices, a backend that there is
// not, and as compile_to_memory.
SplitModel split_model(const Model& model, const CompileOptions& compile, const SplitModelOptions& options);

struct SplitFile {
  SplitModel split;               // its content has the plan that is in the file, and no models
  int64_t nbytes = 0;             // size of the file
  plan::PipelineModel simulated;  // input of the simulator
  plan::Simulation simulation;    // how it says that a stream of requests runs
};

// Splits the model and writes the pipeline to the file `path`. A path that cannot be written, or is one of the model's
// own files, is refused before the work begins. Throws UserError as split_model and save_pipeline.
SplitFile split_to_file(const Model& model, const std::string& path, const CompileOptions& compile,
                        const SplitModelOptions& options);
// Returns the report that users get as JSON, and as a dict in Python (docs/cli-json.md).
Map<std::string, Value> report_of(const SplitFile& file);

}  // namespace headrace::driver
