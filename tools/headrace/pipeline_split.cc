// headrace pipeline split: a model as a pipeline of stages.
#include <unistd.h>

#include <charconv>

#include "driver/split_model.h"
#include "runtime/thread_pool.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/pipeline_verbs.h"

namespace headrace::tools {

namespace {

struct SplitState {
  ModelOptions model;
  std::string output, cpus;
  driver::SplitModelOptions split;
  bool estimate = false, simulate = false;
};

int32_t read_cpu(std::string_view text, const std::string& all) {
  int32_t cpu = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc() || end != text.data() + text.size() || cpu < 0)
    throw UsageError(fmt::format("--cpus: '{}' gives no processors; write those of each stage, as in 0,1/2,3", all));
  return cpu;
}

// Reads "0,1/2,3": the processors of two stages.
std::vector<std::vector<int32_t>> read_cpus(const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::vector<int32_t>> stages(1);
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(",/", begin), text.size());
    stages.back().push_back(read_cpu(std::string_view(text).substr(begin, end - begin), text));
    if (end < text.size() && text[end] == '/') stages.emplace_back();
    begin = end + 1;
  }
  return stages;
}

int split(SplitState state, const Common& common) {
  if (state.output == "-") throw UsageError("--output: a pipeline's file is not text; name a file, such as pipe.so");
  state.split.cpus = read_cpus(state.cpus);
  if (state.estimate) state.split.replans = -1;
  const driver::CompileOptions options = state.model.compile_options(common);
  if (!common.quiet && isatty(STDERR_FILENO) != 0)
    state.split.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  driver::Model model = driver::load_model(state.model.path, state.model.load_options(options));
  for (std::string& file : files_of("--bind", state.model.bound)) model.files.push_back(std::move(file));
  const driver::SplitFile file = driver::split_to_file(model, state.output, options, state.split);
  const driver::SplitModel& split = file.split;
  if (common.json) {
    Report report{{"output", Value(state.output)}};
    for (const auto& [key, value] : driver::report_of(file)) report.set(key, value);
    std::cout << to_json(report);
    return HR_OK;
  }
  print_out("{}: {}, {} tried, times {}\n\n{}", shown(state.output), show_bytes(file.nbytes),
            split.num_plans == 1 ? "one plan" : fmt::format("{} plans", split.num_plans),
            split.seconds.empty() ? "estimated by the sizes of tensors" : "measured",
            plan::format_plan(split.problem, split.plan));
  if (state.simulate) {
    print_out("\n{}", plan::format_simulation(file.simulated, file.simulation));
  } else {
    print_out("predicted    {:.1f} requests a second\n", file.simulation.requests_per_second);
  }
  return HR_OK;
}

}  // namespace

Verb add_pipeline_split(CLI::App& pipeline, const Common& common) {
  auto state = std::make_shared<SplitState>();
  CLI::App* verb = pipeline.add_subcommand("split", "Split a model into stages that run at the same time");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  takes_path(verb->add_option("-o,--output", state->output, "The file of the pipeline, such as pipe.so")->required(),
             "FILE");
  takes(verb->add_option("--stages", state->split.stages, "At most so many stages")->capture_default_str(), {1, 64, 2});
  takes(verb->add_option("--threads", state->split.threads, "Threads of each stage")->capture_default_str(),
        {1, runtime::kMaxWorkers, 2});
  verb->add_option("--cpus", state->cpus, "The processors of each stage, as in 0,1/2,3; otherwise any")
      ->type_name("LIST/LIST...");
  takes(verb->add_option("--replans", state->split.replans,
                         "How often the model is split again by the measured times of its stages")
            ->capture_default_str(),
        {0, 20, 3});
  verb->add_flag("--estimate", state->estimate, "Measure nothing: estimate times by the sizes of tensors");
  takes(verb->add_option("--max-inflight", state->split.max_inflight, "Requests that may be in the pipeline at once")
            ->capture_default_str(),
        {1, artifact::kMostInFlight, 16});
  verb->add_flag("--simulate", state->simulate, "Show how a simulated stream runs: times by stage, latencies");
  verb->footer(
      "Stages are measured one after another on this machine; run it where the pipeline will run.\n"
      "Example: headrace pipeline split resnet50.onnx --stages 2 -o pipe.so --shape data=1,3,224,224");
  return [state, &common] { return split(*state, common); };
}

}  // namespace headrace::tools
