#include "tools/headrace/step_profile.h"

#include <algorithm>
#include <numeric>

#include "base/count_of.h"
#include "cost/limits.h"
#include "cost/probes.h"
#include "driver/output_file.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/output.h"
#include "tools/headrace/processors.h"
#include "tools/headrace/timed_model.h"

namespace headrace::tools {

namespace {

constexpr double kProbeSeconds = 0.1;
constexpr double kLeastSeconds = 1e-9;  // resolution of the clock

struct StepTime {
  size_t index = 0;
  double seconds = 0;  // median
};

struct StepProfile {
  cost::Limits limits;
  std::vector<double> hops;  // before and after the rounds, in nanoseconds; empty for one processor
  double run_seconds = 0;    // median of runs whose steps are not timed
  std::vector<StepTime> steps;
  double sum_seconds() const {
    return std::accumulate(steps.begin(), steps.end(), 0.0,
                           [](double sum, const StepTime& it) { return sum + it.seconds; });
  }
};

// Rounds of the two kinds take turns, so that their medians can be compared.
StepProfile time_steps(const TimedModel& model, const StepProfileOptions& options) {
  StepProfile profile;
  const ProcessorScope processors(options.threads);
  profile.limits = cost::probe_limits(options.threads, kProbeSeconds);
  std::map<std::string, NDArray> inputs;
  const auto executor = make_timed_executor(model, {.threads = options.threads}, options.inputs, inputs);
  std::vector<uint64_t> once(executor->num_steps());
  std::vector<Times> steps(once.size());
  Times runs;
  time_run(*executor);
  for (int round = 0; round < options.rounds; ++round) {
    runs.add(time_run(*executor));
    time_run(*executor, once);
    for (size_t i = 0; i < steps.size(); ++i) steps[i].add(static_cast<double>(once[i]) * 1e-9);
  }
  profile.run_seconds = runs.median();
  for (size_t i = 0; i < steps.size(); ++i) profile.steps.push_back({i, std::max(steps[i].median(), kLeastSeconds)});
  return profile;
}

StepProfile measure(const TimedModel& model, const StepProfileOptions& options) {
  const auto before = cost::hop_nanoseconds(kProbeSeconds);
  StepProfile profile = time_steps(model, options);
  const auto after = cost::hop_nanoseconds(kProbeSeconds);
  if (before && after) profile.hops = {*before, *after};
  return profile;
}

// A step's numbers beside its time; those of operations only where they are known.
struct StepFigures {
  const artifact::Step& step;
  double bytes = 0;
  std::optional<double> gflops;
  double gigabytes = 0;
  cost::LeastTime least;
};

StepFigures figures_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepTime& time) {
  const artifact::Step& step = graph.steps[time.index];
  StepFigures figures{.step = step, .bytes = static_cast<double>(bytes_of(graph, step)), .gflops = {}, .least = {}};
  const auto operations = static_cast<double>(step.operations);
  figures.gigabytes = figures.bytes / time.seconds * 1e-9;
  if (operations > 0) figures.gflops = operations / time.seconds * 1e-9;
  figures.least = cost::least_time(profile.limits, operations, figures.bytes);
  return figures;
}

Report report_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepTime& time) {
  const StepFigures figures = figures_of(graph, profile, time);
  return {{"step", Value(static_cast<int64_t>(time.index))},
          {"op", Value(figures.step.op)},
          {"callee", Value(artifact::callee_of(figures.step.action))},
          {"shapes", Value(shapes_of(graph, figures.step))},
          {"median_seconds", Value(time.seconds)},
          {"operations", Value(figures.step.operations)},
          {"bytes", Value(static_cast<int64_t>(figures.bytes))},
          {"bound", Value(std::string(figures.least.bound))},
          {"share_of_limit", Value(figures.least.seconds / time.seconds)}};
}

std::vector<std::string> row_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepTime& time) {
  const StepFigures figures = figures_of(graph, profile, time);
  return {std::to_string(time.index),
          show_seconds(time.seconds),
          fmt::format("{:.1f} %", 100 * time.seconds / profile.sum_seconds()),
          figures.gflops ? fmt::format("{:.1f}", *figures.gflops) : "-",
          fmt::format("{:.1f}", figures.gigabytes),
          fmt::format("{:.0f} % of {}", 100 * figures.least.seconds / time.seconds, figures.least.bound),
          figures.step.op,
          shapes_of(graph, figures.step)};
}

void print_profile(const artifact::GraphProgram& graph, const StepProfile& profile, const StepProfileOptions& options) {
  std::vector<StepTime> shown = profile.steps;
  if (options.most > 0) {
    std::sort(shown.begin(), shown.end(), [](const StepTime& a, const StepTime& b) {
      return a.seconds != b.seconds ? a.seconds > b.seconds : a.index < b.index;
    });
    shown.resize(std::min(shown.size(), static_cast<size_t>(options.most)));
  }
  std::vector<std::vector<std::string>> rows{
      {"step", "median", "share", "GFLOP/s", "GB/s", "of limit", "op", "writes <- reads"}};
  for (const StepTime& time : shown) rows.push_back(row_of(graph, profile, time));
  std::cout << to_table(rows);
  print_out("{} take {}, a run {} on {}\n", count_of(std::ssize(profile.steps), "step"),
            show_seconds(profile.sum_seconds()), show_seconds(profile.run_seconds),
            count_of(options.threads, "thread"));
  print_out("limits: {:.1f} GFLOP/s", profile.limits.gflops);
  for (const cost::MemoryLimit& memory : profile.limits.memory)
    print_out(", {} {:.1f} GB/s", memory.name, memory.gigabytes);
  if (!profile.hops.empty())
    print_out("; core-to-core hop {:.0f} ns before, {:.0f} ns after", profile.hops[0], profile.hops[1]);
  print_out("\n");
}

// The events of a run, one after another, as a trace that Chrome and Perfetto show (Trace Event Format, events "X").
std::string trace_of(const artifact::GraphProgram& graph, const StepProfile& profile) {
  Array<Value> events;
  double begin = 0;
  for (const StepTime& time : profile.steps) {
    const StepFigures figures = figures_of(graph, profile, time);
    const std::string callee = artifact::callee_of(figures.step.action);
    events.push_back(Value(Report{{"name", Value(figures.step.op.empty() ? callee : figures.step.op)},
                                  {"cat", Value(std::string(artifact::name_of(figures.step.action)))},
                                  {"ph", Value(std::string("X"))},
                                  {"ts", Value(begin * 1e6)},
                                  {"dur", Value(time.seconds * 1e6)},
                                  {"pid", Value(int64_t{1})},
                                  {"tid", Value(int64_t{1})},
                                  {"args", Value(report_of(graph, profile, time))}}));
    begin += time.seconds;
  }
  return to_json({{"traceEvents", Value(events)}, {"displayTimeUnit", Value(std::string("ns"))}});
}

Report report_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepProfileOptions& options,
                 const std::string& path) {
  Array<Value> steps, memory, hops;
  for (const StepTime& time : profile.steps) steps.push_back(Value(report_of(graph, profile, time)));
  for (const cost::MemoryLimit& limit : profile.limits.memory) {
    memory.push_back(
        Value(Report{{"name", Value(std::string(limit.name))}, {"gigabytes_per_second", Value(limit.gigabytes)}}));
  }
  for (const double hop : profile.hops) hops.push_back(Value(hop));
  return {{"model", Value(path)},
          {"threads", Value(int64_t{options.threads})},
          {"rounds", Value(int64_t{options.rounds})},
          {"run_median_seconds", Value(profile.run_seconds)},
          {"steps_median_seconds", Value(profile.sum_seconds())},
          {"gflops", Value(profile.limits.gflops)},
          {"memory", Value(memory)},
          {"hop_nanoseconds", Value(hops)},
          {"steps", Value(steps)}};
}

}  // namespace

int profile_steps(const ModelOptions& model, const StepProfileOptions& options, const Common& common) {
  FileUses uses = model.files(common);
  uses.add_inputs("an input", files_of("--input", options.inputs.files()));
  uses.add_output("--trace", options.trace);
  uses.check();
  options.inputs.require();
  const TimedModel timed = open_timed_model(model, common, uses);
  const artifact::GraphProgram& graph = default_graph(*timed.artifact);
  const StepProfile profile = measure(timed, options);
  if (!options.trace.empty()) driver::write_text(options.trace, trace_of(graph, profile));
  if (common.json) {
    std::cout << to_json(report_of(graph, profile, options, model.path));
  } else {
    print_profile(graph, profile, options);
  }
  return HR_OK;
}

}  // namespace headrace::tools
