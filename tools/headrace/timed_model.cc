#include "tools/headrace/timed_model.h"

#include <fmt/ranges.h>

#include <chrono>

#include "artifact/tensor_extent.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

TimedModel open_timed_model(const ModelOptions& model, const Common& common, const std::vector<std::string>& inputs,
                            FileUses& uses) {
  TimedModel timed;
  timed.artifact = open_or_compile(model, common, inputs, timed.limits, uses);
  return timed;
}

std::shared_ptr<executors::Executor> make_timed_executor(const TimedModel& model,
                                                         const executors::ExecutorOptions& options,
                                                         const InputOptions& read,
                                                         std::map<std::string, NDArray>& inputs) {
  auto executor = load::make_executor(model.artifact, artifact::kDefaultProgram, options);
  const std::vector<NDArray> tensors = read.read(executor->inputs(), model.limits);
  for (size_t i = 0; i < tensors.size(); ++i) {
    executors::throw_if_failed(executor->set_input(i, tensors[i].tensor()));
    inputs.emplace(executor->inputs()[i].name, tensors[i]);
  }
  return executor;
}

double time_run(executors::Executor& executor, std::span<uint64_t> step_nanoseconds) {
  const auto begin = std::chrono::steady_clock::now();
  const executors::Status status = executor.run(step_nanoseconds);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  executors::throw_if_failed(status);
  return seconds.count();
}

const artifact::GraphProgram& default_graph(const load::Artifact& artifact) {
  static const artifact::GraphProgram none;
  for (const artifact::Program& program : artifact.manifest().programs) {
    if (program.name == artifact::kDefaultProgram) return program.graph;
  }
  return none;
}

std::string label_of(const artifact::Step& step) {
  const auto* region = std::get_if<artifact::RegionCall>(&step.action);
  return region == nullptr ? step.op : fmt::format("{} (region {})", step.op, region->region);
}

std::string shapes_of(const artifact::GraphProgram& graph, const artifact::Step& step) {
  const size_t num_inputs = step.args.size() - static_cast<size_t>(step.num_outputs);
  const auto list = [&](size_t begin, size_t end) {
    std::vector<std::string> shapes;
    for (size_t i = begin; i < end; ++i) {
      const auto& shape = graph.entries[static_cast<size_t>(step.args[i])].shape;
      shapes.push_back(shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x")));
    }
    return fmt::format("{}", fmt::join(shapes, ", "));
  };
  return list(num_inputs, step.args.size()) + " <- " + list(0, num_inputs);
}

int64_t bytes_of(const artifact::GraphProgram& graph, const artifact::Step& step) {
  int64_t bytes = 0;
  for (const int32_t arg : step.args) {
    const artifact::Entry& entry = graph.entries[static_cast<size_t>(arg)];
    bytes += artifact::tensor_nbytes(entry.dtype, entry.shape).value_or(0);
  }
  return bytes;
}

}  // namespace headrace::tools
