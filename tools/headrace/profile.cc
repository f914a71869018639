// headrace profile: shows where the time of a run goes, measures the ops of a model natively and by backends, and whole
// plans, for placement by cost, or probes the machine.
#include "driver/profile.h"

#include <unistd.h>

#include <cstdio>

#include "base/count_of.h"
#include "driver/output_file.h"
#include "runtime/thread_pool.h"
#include "tools/headrace/machine_report.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/step_profile.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

constexpr const char* kModelHelp = "A model (.onnx, .relay), or without -o an artifact (.so)";

struct ProfileState {
  ModelOptions model;
  std::string output;
  StepProfileOptions steps;
  bool only_machine = false;
};

int measure_costs(const ProfileState& state, const Common& common) {
  driver::CompileOptions options = state.model.compile_options(common);
  options.threads = state.steps.threads;
  const driver::Model model = driver::load_model(state.model.path, state.model.load_options(options));
  FileUses uses = state.model.files(common);
  uses.add_inputs("the model", model.files);
  uses.add_output("--output", state.output);
  uses.check();
  driver::ProfileOptions profiling{.rounds = state.steps.rounds};
  if (options.progress) {
    profiling.progress = [](std::string_view what, size_t index, size_t count) {
      fmt::print(stderr, "\r\033[K[{}/{}] {}{}", index + 1, count, what, index + 1 == count ? "\r\033[K" : "");
      std::fflush(stderr);
    };
  }
  const partition::CostTable table = driver::profile(model, options, profiling);
  driver::write_text(state.output, partition::to_json(table));
  if (common.json) {
    std::cout << to_json({{"output", Value(state.output)},
                          {"cpu", Value(table.cpu)},
                          {"threads", Value(table.threads)},
                          {"costs", Value(static_cast<int64_t>(table.costs.size()))},
                          {"plans", Value(static_cast<int64_t>(table.plans.size()))}});
  } else {
    print_out("{}: {} of calls and {} of whole plans on {}, {}\n", shown(state.output),
              count_of(std::ssize(table.costs), "cost"), table.plans.size(), table.cpu,
              count_of(table.threads, "thread"));
  }
  return HR_OK;
}

int profile(const ProfileState& state, const Common& common) {
  if (state.only_machine) {
    std::vector<std::string> given = state.model.given();
    if (!state.model.path.empty()) given.insert(given.begin(), "a model");
    if (!given.empty())
      throw UsageError(fmt::format("--machine: it probes this machine alone; leave {} out", fmt::join(given, ", ")));
    return profile_machine(state.steps.threads, common);
  }
  if (state.model.path.empty()) throw UsageError(fmt::format("model is required: {}", kModelHelp));
  return state.output.empty() ? profile_steps(state.model, state.steps, common) : measure_costs(state, common);
}

constexpr const char* kFooter =
    "Without -o each step of a run is timed. A row shows its share of the run, its operations and bytes per second, "
    "and\n"
    "how close it is to the least time that this machine allows. That limit is probed: multiply-adds per second, and\n"
    "the time to read the step's bytes once from the smallest cache that holds them. Operations are estimated from "
    "the\n"
    "sizes of tensors.\n"
    "With -o each op is compiled as a program of its own, natively and for each backend that takes it, and measured\n"
    "for placement by cost (--placement cost --costs FILE). The whole model is timed, too: natively, on each backend\n"
    "alone, and by the order of the list; placement scales the costs of ops to these times.\n"
    "With --machine, and no model, it probes this machine, and shows what estimates take for it.\n"
    "Example: headrace profile model.so --top 10\n"
    "         headrace profile model.onnx --threads 2 --trace run.json\n"
    "         headrace profile resnet50.onnx --backends ccompiler -o costs.json\n"
    "         headrace profile --machine --threads 2";

}  // namespace

Verb add_profile(CLI::App& app, const Common& common) {
  auto state = std::make_shared<ProfileState>();
  CLI::App* verb = app.add_subcommand("profile", "Show where the time of a run goes, or measure ops for --costs");
  state->model.add_to(*verb, kModelHelp);
  verb->get_option("model")->required(false);  // --machine takes none
  CLI::Option* costs = takes_path(
      verb->add_option("-o,--output", state->output, "Measure costs for placement, and write them to this file"),
      "FILE");
  StepProfileOptions& steps = state->steps;
  takes(verb->add_option("--rounds", steps.rounds,
                         "Number of runs; a step's time is their median, and with -o a time is their least")
            ->capture_default_str(),
        {1, 100'000, 30});
  takes(verb->add_option("--threads", steps.threads, "Threads of a run")->capture_default_str(),
        {1, runtime::kMaxWorkers, 2});
  takes(verb->add_option("--top", steps.most, "Show only the N steps that take longest"), {1, 100'000, 10})
      ->excludes(costs);
  takes_path(verb->add_option("--trace", steps.trace,
                              "Write a run as a trace that Chrome and Perfetto show, with a lane for each thread"),
             "FILE")
      ->excludes(costs);
  CLI::Option* machine = verb->add_flag("--machine", state->only_machine,
                                        "Probe this machine: multiply-adds, caches, memory, the hop between cores");
  for (const char* other : {"--output", "--rounds", "--top", "--trace"}) machine->excludes(verb->get_option(other));
  steps.inputs.add_random_to(*verb);
  for (CLI::Option* option : steps.inputs.options()) option->excludes(costs)->excludes(machine);
  verb->footer(kFooter);
  return [state, &common] { return profile(*state, common); };
}

}  // namespace headrace::tools
