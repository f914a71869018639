// headrace profile: shows where the time of a run goes, measures the ops of a model natively and by backends, and whole
// plans, for placement by cost, or probes the machine.
#include "driver/profile.h"

#include <unistd.h>

#include <cstdio>

#include "base/count_of.h"
#include "driver/cost_cache.h"
#include "driver/output_file.h"
#include "runtime/thread_pool.h"
#include "tools/headrace/machine_report.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/session.h"
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
  bool again = false;
  bool only_machine = false;
};

driver::CompileOptions measured_options(const ProfileState& state, const Common& common) {
  driver::CompileOptions options = state.model.compile_options(common);
  options.threads = state.steps.threads;
  return options;
}

driver::ProfileOptions profile_options(const ProfileState& state, const driver::CompileOptions& options) {
  driver::ProfileOptions profiling{.rounds = state.steps.rounds};
  if (options.progress) {
    profiling.progress = [](std::string_view what, size_t index, size_t count) {
      fmt::print(stderr, "\r\033[K[{}/{}] {}{}", index + 1, count, what, index + 1 == count ? "\r\033[K" : "");
      std::fflush(stderr);
    };
  }
  return profiling;
}

int measure_costs(const ProfileState& state, const Common& common) {
  const driver::CompileOptions options = measured_options(state, common);
  const driver::Model model = driver::load_model(state.model.path, state.model.load_options(options));
  FileUses uses = state.model.files(common);
  uses.add_inputs("the model", model.files);
  uses.add_output("--output", state.output);
  uses.check();
  const partition::CostTable table = driver::profile(model, options, profile_options(state, options));
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

// Loads the model, whose open dimensions have the sizes of the input files.
driver::Model load_with_inputs(const ProfileState& state, const driver::CompileOptions& options) {
  driver::LoadOptions load = state.model.load_options(options);
  add_shapes_of_files(state.model.path, state.steps.inputs.files(), load);
  return driver::load_model(state.model.path, load);
}

// Times the steps of the model with its regions. The costs of its calls are kept for placement.
int profile_backends(const ProfileState& state, const Common& common) {
  const driver::CompileOptions options = measured_options(state, common);
  const driver::Model model = load_with_inputs(state, options);
  const driver::KeptCosts kept =
      driver::profile_into_cache(model, options, profile_options(state, options), state.again);
  const auto number = [](size_t count) { return Value(static_cast<int64_t>(count)); };
  const Report costs{
      {"file", Value(kept.path)}, {"measured", number(kept.num_measured)}, {"kept", number(kept.num_kept)}};
  const int code = profile_steps(state.model, state.steps, common, {{"costs", Value(costs)}});
  if (!common.json)
    print_out("{} measured, {} kept for --placement cost --costs {}: {}\n",
              count_of(static_cast<int64_t>(kept.num_measured), "cost"), kept.num_kept, driver::kCachedCosts,
              shown(kept.path));
  return code;
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
  if (!state.output.empty()) return measure_costs(state, common);
  if (!state.model.backends.empty() || !state.model.plan.empty()) return profile_backends(state, common);
  if (state.again)
    throw UsageError("--again: without --backends or --plan no costs are measured; give one, or leave it out");
  return profile_steps(state.model, state.steps, common);
}

constexpr const char* kFooter =
    "Without -o each step of a run is timed. A row shows its share of the run, its operations and bytes per\n"
    "second, and how close it is to the least time that this machine allows. That limit is probed: multiply-adds\n"
    "per second, and the time to read the step's bytes once from the smallest cache that holds them. Operations are\n"
    "estimated from the sizes of tensors.\n"
    "With --backends, or the backends of a --plan, each op is also compiled as a program of its own, natively and\n"
    "for each backend that takes it, and measured for placement by cost (--placement cost --costs cache). The whole\n"
    "model is timed, too: natively, on each backend alone, and by the order of the list; placement scales the costs\n"
    "of ops to these times. Then the plan of least cost is tried. The costs are kept in the folder of\n"
    "HEADRACE_CACHE, or the user's cache folder, and an op that was measured by the same versions is not measured\n"
    "again. With -o all costs are measured, and written to a file of their own for --costs FILE.\n"
    "With --machine, and no model, it probes this machine, and shows what estimates take for it.\n"
    "Example: headrace profile model.so --top 10\n"
    "         headrace profile model.onnx --threads 2 --trace run.json\n"
    "         headrace profile resnet50.onnx --backends ccompiler\n"
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
  verb->add_flag("--again", state->again, "Measure costs again that were kept before")->excludes(costs);
  steps.fallback.add_to(*verb);
  CLI::Option* machine = verb->add_flag("--machine", state->only_machine,
                                        "Probe this machine: multiply-adds, caches, memory, the hop between cores");
  for (const char* other : {"--output", "--rounds", "--top", "--trace", "--again", "--fallback"})
    machine->excludes(verb->get_option(other));
  steps.inputs.add_random_to(*verb);
  for (CLI::Option* option : steps.inputs.options()) option->excludes(costs)->excludes(machine);
  verb->footer(kFooter);
  return [state, &common] { return profile(*state, common); };
}

}  // namespace headrace::tools
