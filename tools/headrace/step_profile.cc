#include "tools/headrace/step_profile.h"

#include <algorithm>
#include <numeric>

#include "base/count_of.h"
#include "cost/probes.h"
#include "driver/output_file.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/output.h"
#include "tools/headrace/processors.h"
#include "tools/headrace/run_trace.h"
#include "tools/headrace/step_figures.h"
#include "tools/headrace/timed_model.h"

namespace headrace::tools {

namespace {

constexpr double kLeastSeconds = 1e-9;  // resolution of the clock

struct StepTime {
  size_t index = 0;
  double seconds = 0;  // median
};

struct StepProfile {
  cost::Limits limits;
  std::vector<double> hops;  // before and after the rounds, in nanoseconds; empty for one processor
  double run_seconds = 0;    // median of runs whose steps are not timed
  double share_of_run = 0;   // median over the rounds of the sum of the steps by the run beside them
  std::vector<StepTime> steps;
  TracedRun traced;           // if a trace is asked for
  Array<Value> fallbacks;     // regions that fell back to native code
  std::string fallback_text;  // lines for them
  double sum_seconds() const {
    return std::accumulate(steps.begin(), steps.end(), 0.0,
                           [](double sum, const StepTime& it) { return sum + it.seconds; });
  }
};

// The times of the rounds: a run, and one whose steps are timed.
struct Rounds {
  Times runs, shares;
  std::vector<Times> steps;
};

// The two kinds of runs take turns, and which one is first does, too. So a machine that is busy, or becomes faster or
// slower, changes both alike.
Rounds time_rounds(executors::Executor& executor, int count) {
  Rounds rounds;
  rounds.steps.resize(executor.num_steps());
  std::vector<uint64_t> once(executor.num_steps());
  time_run(executor);
  for (int round = 0; round < count; ++round) {
    const bool is_run_first = round % 2 == 0;
    double run = is_run_first ? time_run(executor) : 0;
    time_run(executor, once);
    if (!is_run_first) run = time_run(executor);
    rounds.runs.add(run);
    const auto sum = static_cast<double>(std::accumulate(once.begin(), once.end(), uint64_t{0})) * 1e-9;
    rounds.shares.add(sum / std::max(run, kLeastSeconds));
    for (size_t i = 0; i < once.size(); ++i) rounds.steps[i].add(static_cast<double>(once[i]) * 1e-9);
  }
  return rounds;
}

StepProfile time_steps(const TimedModel& model, const StepProfileOptions& options) {
  StepProfile profile;
  const ProcessorScope processors(options.threads);
  profile.limits = cost::probe_limits(options.threads, kProbeSeconds);
  std::map<std::string, NDArray> inputs;
  const auto executor = make_timed_executor(model, {.threads = options.threads, .fallback = options.fallback.read()},
                                            options.inputs, inputs);
  const Rounds rounds = time_rounds(*executor, options.rounds);
  if (!options.trace.empty()) profile.traced = trace_run(*executor);
  profile.fallbacks = fallbacks_report(*executor);
  profile.fallback_text = fallbacks_text(*executor);
  profile.run_seconds = rounds.runs.median();
  profile.share_of_run = rounds.shares.median();
  for (size_t i = 0; i < rounds.steps.size(); ++i)
    profile.steps.push_back({i, std::max(rounds.steps[i].median(), kLeastSeconds)});
  return profile;
}

StepProfile measure(const TimedModel& model, const StepProfileOptions& options) {
  const auto before = cost::hop_nanoseconds(kProbeSeconds);
  StepProfile profile = time_steps(model, options);
  const auto after = cost::hop_nanoseconds(kProbeSeconds);
  if (before && after) profile.hops = {*before, *after};
  return profile;
}

StepFigures figures_at(const artifact::GraphProgram& graph, const StepProfile& profile, const StepTime& time) {
  return figures_of(graph, profile.limits, time.index, time.seconds);
}

Report report_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepTime& time) {
  const StepFigures figures = figures_at(graph, profile, time);
  Report report{{"step", Value(static_cast<int64_t>(time.index))},
                {"op", Value(figures.step.op)},
                {"callee", Value(artifact::callee_of(figures.step.action))},
                {"shapes", Value(shapes_of(graph, figures.step))},
                {"median_seconds", Value(time.seconds)}};
  add_figures(report, figures);
  return report;
}

std::vector<std::string> row_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepTime& time) {
  const StepFigures figures = figures_at(graph, profile, time);
  return {std::to_string(time.index),
          show_seconds(time.seconds),
          fmt::format("{:.1f} %", 100 * time.seconds / profile.sum_seconds()),
          show_bytes(static_cast<int64_t>(figures.bytes)),
          figures.gflops ? fmt::format("{:.1f}", *figures.gflops) : "-",
          fmt::format("{:.1f}", figures.gigabytes),
          limit_text(figures),
          label_of(figures.step),
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
      {"step", "median", "share", "bytes", "GFLOP/s", "GB/s", "of limit", "op", "writes <- reads"}};
  for (const StepTime& time : shown) rows.push_back(row_of(graph, profile, time));
  std::cout << to_table(rows);
  print_out("{}: {}, a run {} on {}; round by round the steps are {:.1f} % of a run\n",
            count_of(std::ssize(profile.steps), "step"), show_seconds(profile.sum_seconds()),
            show_seconds(profile.run_seconds), count_of(options.threads, "thread"), 100 * profile.share_of_run);
  std::cout << profile.fallback_text;
  print_out("limits: {:.1f} GFLOP/s", profile.limits.gflops);
  for (const cost::MemoryLimit& memory : profile.limits.memory)
    print_out(", {} {:.1f} GB/s", memory.name, memory.gigabytes);
  if (!profile.hops.empty())
    print_out("; core-to-core hop {:.0f} ns before, {:.0f} ns after", profile.hops[0], profile.hops[1]);
  print_out("\n");
}

Array<Value> hops_of(const StepProfile& profile) {
  Array<Value> hops;
  for (const double hop : profile.hops) hops.push_back(Value(hop));
  return hops;
}

std::string text_of_trace(const artifact::GraphProgram& graph, const StepProfile& profile) {
  TracedRun run = profile.traced;
  for (const StepTime& time : profile.steps) run.args.push_back(report_of(graph, profile, time));
  return trace_of(graph, {&run, 1}, {{"hop_nanoseconds", Value(hops_of(profile))}});
}

Report report_of(const artifact::GraphProgram& graph, const StepProfile& profile, const StepProfileOptions& options,
                 const std::string& path) {
  Array<Value> steps, memory;
  for (const StepTime& time : profile.steps) steps.push_back(Value(report_of(graph, profile, time)));
  for (const cost::MemoryLimit& limit : profile.limits.memory) {
    memory.push_back(
        Value(Report{{"name", Value(std::string(limit.name))}, {"gigabytes_per_second", Value(limit.gigabytes)}}));
  }
  return {{"model", Value(path)},
          {"threads", Value(int64_t{options.threads})},
          {"rounds", Value(int64_t{options.rounds})},
          {"run_median_seconds", Value(profile.run_seconds)},
          {"steps_median_seconds", Value(profile.sum_seconds())},
          {"steps_share_of_run", Value(profile.share_of_run)},
          {"gflops", Value(profile.limits.gflops)},
          {"memory", Value(memory)},
          {"hop_nanoseconds", Value(hops_of(profile))},
          {"fallbacks", Value(profile.fallbacks)},
          {"steps", Value(steps)}};
}

}  // namespace

int profile_steps(const ModelOptions& model, const StepProfileOptions& options, const Common& common,
                  const Report& more) {
  FileUses uses = model.files(common);
  uses.add_inputs("an input", files_of("--input", options.inputs.files()));
  uses.add_output("--trace", options.trace);
  uses.check();
  options.inputs.require();
  ModelOptions compiled = model;
  compiled.threads = options.threads;
  const TimedModel timed = open_timed_model(compiled, common, options.inputs.files(), uses);
  const artifact::GraphProgram& graph = default_graph(*timed.artifact);
  const StepProfile profile = measure(timed, options);
  if (!options.trace.empty()) driver::write_text(options.trace, text_of_trace(graph, profile));
  if (common.json) {
    Report report = report_of(graph, profile, options, model.path);
    for (const auto& [name, value] : more) report.set(name, value);
    std::cout << to_json(report);
  } else {
    print_profile(graph, profile, options);
  }
  return HR_OK;
}

}  // namespace headrace::tools
