// The model whose runs bench and profile time, on random inputs.
#pragma once

#include <map>
#include <span>

#include "tools/headrace/input_options.h"
#include "tools/headrace/session.h"

namespace headrace::tools {

struct TimedModel {
  std::shared_ptr<const load::Artifact> artifact;
  std::vector<int64_t> limits;  // limits of the values of index inputs (open_or_compile)
};
// `inputs` (of --input) and `uses` as in open_or_compile.
TimedModel open_timed_model(const ModelOptions& model, const Common& common, const std::vector<std::string>& inputs,
                            FileUses& uses);

// Makes an executor of the default program whose inputs are set to those of the options, which `inputs` receives by
// name.
std::shared_ptr<executors::Executor> make_timed_executor(const TimedModel& model,
                                                         const executors::ExecutorOptions& options,
                                                         const InputOptions& read,
                                                         std::map<std::string, NDArray>& inputs);

// Runs once and returns the seconds, and in `step_nanoseconds` those of each step; empty: they are not measured.
double time_run(executors::Executor& executor, std::span<uint64_t> step_nanoseconds = {});

// Returns the steps of the program that is timed. Returns none if the artifact has no such program, which is reported
// when its executor is made.
const artifact::GraphProgram& default_graph(const load::Artifact& artifact);

// Returns the op of a step, and the region that it runs, if it does.
std::string label_of(const artifact::Step& step);
// "1x8x8x8 <- 1x1x8x8, 8x1x3x3": what a step writes and reads.
std::string shapes_of(const artifact::GraphProgram& graph, const artifact::Step& step);
// Returns the bytes of all tensors that a step writes and reads.
int64_t bytes_of(const artifact::GraphProgram& graph, const artifact::Step& step);

}  // namespace headrace::tools
