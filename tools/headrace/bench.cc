// headrace bench: measures the time of a run, in rounds that alternate with other models and with another runtime.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <numeric>
#include <optional>
#include <set>

#include "base/count_of.h"
#include "driver/output_file.h"
#include "tools/headrace/bench_page.h"
#include "tools/headrace/comparison.h"
#include "tools/headrace/fallback_option.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/interruption.h"
#include "tools/headrace/output.h"
#include "tools/headrace/peer_options.h"
#include "tools/headrace/processors.h"
#include "tools/headrace/run_trace.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/step_figures.h"
#include "tools/headrace/timed_model.h"
#include "tools/headrace/usage.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

struct BenchState {
  ModelOptions model;
  std::vector<std::string> beside;  // other models
  std::string threads = "1", cpus;
  PeerOptions peer;
  InputOptions inputs;
  TurnOptions turns = {.rounds = 15};
  const CLI::Option* seconds_option = nullptr;
  int clients = 1;
  FallbackOption fallback;
  bool steps = false;
  std::string page, trace;  // empty: none

  std::vector<std::string> paths() const {
    std::vector<std::string> all{model.path};
    all.insert(all.end(), beside.begin(), beside.end());
    return all;
  }
  bool times_steps() const { return steps || !trace.empty(); }
};

// A model that is timed, and its file.
struct Subject {
  std::string path;
  TimedModel model;
};

// The shortest time of each step of a program with one number of threads, and what this machine allows them.
struct StepTimes {
  std::vector<double> seconds = {};
  cost::Limits limits = {};
  TracedRun traced = {};  // if a trace is asked for
};

// With fewer runs the 99th percentile is just the longest of them.
constexpr size_t kLeastForP99 = 100;

// Longer than the idle threads of either runtime spin.
constexpr int kPauseMilliseconds = 20;

// The times measured with one number of threads.
struct Measured {
  std::vector<Times> ours = {};  // by subject
  std::vector<double> per_second = {};
  Times peer = {};
  StepTimes steps = {};  // times of the first subject
  std::vector<int> processors = {};
  double difference = 0;  // between our outputs and the peer's
  // Regions that fell back to native code, by subject.
  std::vector<Array<Value>> fallbacks = {};
  std::vector<std::string> fallback_texts = {};

  void add_fallbacks(const executors::Executor& executor) {
    fallbacks.push_back(fallbacks_report(executor));
    fallback_texts.push_back(fallbacks_text(executor));
  }
};

StepTimes time_steps(executors::Executor& executor, int rounds, int threads) {
  std::vector<uint64_t> best(executor.num_steps(), UINT64_MAX), once(best.size());
  for (int round = 0; round < rounds && (round == 0 || !StopRequest::is_made()); ++round) {
    time_run(executor, once);
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], once[i]);
  }
  StepTimes times{.limits = cost::probe_limits(threads, kProbeSeconds)};
  // A step that is shorter than the clock's resolution has a time of 0.
  for (const uint64_t nanoseconds : best)
    times.seconds.push_back(1e-9 * static_cast<double>(std::max<uint64_t>(nanoseconds, 1)));
  return times;
}

// Returns views of the last run's outputs in the executor's memory.
std::vector<NDArray> outputs_of(const executors::Executor& executor) {
  std::vector<NDArray> outputs;
  for (size_t i = 0; i < executor.outputs().size(); ++i) {
    const DLTensor& made = executor.output(i);
    outputs.push_back(
        NDArray::view(made.data, Shape(made.shape, made.shape + made.ndim), executor.outputs()[i].dtype, [] {}));
  }
  return outputs;
}

using Executors = std::vector<std::shared_ptr<executors::Executor>>;

std::vector<TimedRun> runs_of(const Executors& executors) {
  std::vector<TimedRun> runs;
  for (const auto& executor : executors) runs.emplace_back([executor] { return time_run(*executor); });
  return runs;
}

ProcessorScope scope_of(const BenchState& state, int threads) {
  return state.cpus.empty() ? ProcessorScope(threads) : ProcessorScope(parse_processors("--cpus", state.cpus));
}

// One executor a subject, which take turns with each other and with the peer.
Measured measure_in_turns(const BenchState& state, const std::vector<Subject>& subjects, int threads,
                          std::string& peer_version) {
  // Make the scope before threads and the peer are started, because they inherit its processors.
  const ProcessorScope processors = scope_of(state, threads);
  std::map<std::string, NDArray> inputs, ignored;
  Executors executors;
  for (const Subject& subject : subjects) {
    executors.push_back(make_timed_executor(subject.model, {.threads = threads, .fallback = state.fallback.read()},
                                            state.inputs, executors.empty() ? inputs : ignored));
  }
  std::vector<TimedRun> runs = runs_of(executors);
  std::unique_ptr<Peer> peer;
  if (state.peer.is_given()) {
    inputs.merge(state.model.load_options(driver::CompileOptions()).bound);  // our constants are inputs to the peer
    peer = state.peer.start(state.model.path, inputs, threads);
    peer_version = peer->version();
    runs.emplace_back([&] { return peer->time(); });
  }
  TurnOptions turns = state.turns;
  turns.pause = std::chrono::milliseconds(peer && threads > 1 ? kPauseMilliseconds : 0);
  Measured measured{.ours = time_in_turns(runs, turns), .processors = processors.processors()};
  if (peer) {
    measured.peer = std::move(measured.ours.back());
    measured.ours.pop_back();
    measured.difference = largest_difference(outputs_of(*executors.front()), peer->run());
  }
  for (const Times& times : measured.ours)
    measured.per_second.push_back(static_cast<double>(times.count()) / times.sum());
  if (state.times_steps()) measured.steps = time_steps(*executors.front(), state.turns.rounds, threads);
  if (!state.trace.empty()) measured.steps.traced = trace_run(*executors.front());
  for (const auto& executor : executors) measured.add_fallbacks(*executor);
  return measured;
}

// For each subject one executor a client, all at once, each with threads of its own.
Measured measure_at_once(const BenchState& state, const std::vector<Subject>& subjects, int threads) {
  const ProcessorScope processors = scope_of(state, threads * state.clients);
  Measured measured{.processors = processors.processors()};
  for (const Subject& subject : subjects) {
    Executors executors;
    std::map<std::string, NDArray> inputs;
    for (int i = 0; i < state.clients; ++i) {
      const auto pool = std::make_shared<runtime::ThreadPool>(threads);
      executors.push_back(
          make_timed_executor(subject.model, {.pool = pool, .fallback = state.fallback.read()}, state.inputs, inputs));
    }
    TimesAtOnce times = time_at_once(runs_of(executors), state.turns);
    measured.per_second.push_back(static_cast<double>(times.runs.count()) / times.seconds);
    measured.ours.push_back(std::move(times.runs));
    measured.add_fallbacks(*executors.front());
  }
  return measured;
}

Report report_step(const artifact::GraphProgram& graph, const StepTimes& best, size_t i) {
  const artifact::Step& step = graph.steps[i];
  Report report{{"op", Value(step.op)},
                {"callee", Value(artifact::callee_of(step.action))},
                {"shapes", Value(shapes_of(graph, step))},
                {"best_seconds", Value(best.seconds[i])}};
  add_figures(report, figures_of(graph, best.limits, i, best.seconds[i]));
  return report;
}

Array<Value> report_steps(const artifact::GraphProgram& graph, const StepTimes& best) {
  Array<Value> list;
  for (size_t i = 0; i < best.seconds.size(); ++i) list.push_back(Value(report_step(graph, best, i)));
  return list;
}

// Prints the steps. Each number of threads has three columns: the times, their shares of the sum, and how near they are
// to the limit of the machine.
void print_steps(const artifact::GraphProgram& graph, const std::vector<int>& threads,
                 const std::vector<StepTimes>& best) {
  std::vector<std::vector<std::string>> rows{{"step"}};
  for (size_t k = 0; k < best.size(); ++k)
    rows[0].insert(rows[0].end(), {count_of(threads[k], "thread"), "share", "of limit"});
  rows[0].insert(rows[0].end(), {"op", "writes <- reads"});
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(std::to_string(i));
    for (const StepTimes& times : best) {
      const double sum = std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0);
      row.push_back(show_seconds(times.seconds[i]));
      row.push_back(fmt::format("{:.1f} %", 100 * times.seconds[i] / sum));
      row.push_back(limit_text(figures_of(graph, times.limits, i, times.seconds[i])));
    }
    row.insert(row.end(), {label_of(graph.steps[i]), shapes_of(graph, graph.steps[i])});
  }
  std::cout << to_table(rows);
}

void write_trace(const BenchState& state, const artifact::GraphProgram& graph, const std::vector<StepTimes>& best) {
  std::vector<TracedRun> runs;
  for (const StepTimes& times : best) {
    TracedRun& run = runs.emplace_back(times.traced);
    for (size_t i = 0; i < times.seconds.size(); ++i) run.args.push_back(report_step(graph, times, i));
  }
  driver::write_text(state.trace, trace_of(graph, runs));
}

// Adds the times of subject `i` to the table and, as an object, to the report.
Report add_result(const BenchState& state, const Subject& subject, size_t i, int threads, const Measured& measured,
                  std::vector<std::vector<std::string>>& rows) {
  const Times& ours = measured.ours[i];
  Report one{{"model", Value(subject.path)},
             {"threads", Value(int64_t{threads})},
             {"processors", Value(Shape(measured.processors.begin(), measured.processors.end()))},
             {"runs", Value(static_cast<int64_t>(ours.count()))},
             {"best_seconds", Value(ours.best())},
             {"median_seconds", Value(ours.median())},
             {"p90_seconds", Value(ours.percentile(0.9))},
             {"p99_seconds", Value(ours.percentile(0.99))},
             {"runs_per_second", Value(measured.per_second[i])},
             {"fallbacks", Value(measured.fallbacks[i])}};
  std::vector<std::string>& row = rows.emplace_back();
  if (!state.beside.empty()) row.push_back(subject.path);
  row.push_back(std::to_string(threads));
  for (const double seconds : {ours.best(), ours.median(), ours.percentile(0.9), ours.percentile(0.99)})
    row.push_back(show_seconds(seconds));
  if (ours.count() < kLeastForP99) row.back() = "-";
  row.push_back(fmt::format("{:.{}f}", measured.per_second[i], measured.per_second[i] < 100 ? 1 : 0));
  row.push_back(fmt::format("{}", ours.count()));
  if (!state.peer.is_given()) return one;
  const double ratio = ours.median() / measured.peer.median();
  one.set("peer_best_seconds", Value(measured.peer.best()));
  one.set("peer_median_seconds", Value(measured.peer.median()));
  one.set("ratio", Value(ratio));
  row.insert(row.end(),
             {show_seconds(measured.peer.best()), show_seconds(measured.peer.median()), fmt::format("{:.2f}", ratio)});
  if (i > 0) return one;  // only the first model's outputs are compared
  one.set("difference", Value(measured.difference));
  row.push_back(fmt::format("{:.2g}", measured.difference));
  return one;
}

// Returns the files that the options name, before what they name is opened.
FileUses files_used(const BenchState& state, const Common& common) {
  FileUses uses = state.model.files(common);
  uses.add_inputs("a model", state.beside);
  uses.add_inputs("a model", {state.peer.model});
  uses.add_inputs("an input", files_of("--input", state.inputs.files()));
  uses.add_output("--html", state.page);
  uses.add_output("--trace", state.trace);
  return uses;
}

// `counts`: the numbers of threads that are timed. A model is compiled for one where it is the only one.
std::vector<Subject> open_subjects(const BenchState& state, const std::vector<int>& counts, const Common& common) {
  FileUses uses = files_used(state, common);
  const std::vector<std::string> paths = state.paths();
  // Options of a compile are for those that are models.
  const bool has_models = !std::all_of(paths.begin(), paths.end(), is_artifact);
  std::vector<Subject> subjects;
  for (const std::string& path : paths) {
    ModelOptions model = state.model;
    model.path = path;
    if (counts.size() == 1) model.threads = counts.front();
    if (!has_models || !is_artifact(path)) {
      subjects.push_back({path, open_timed_model(model, common, state.inputs.files(), uses)});
      continue;
    }
    subjects.push_back({path, {.artifact = open_artifact(path), .limits = {}}});
    add_artifact(uses, path, subjects.back().model.artifact->manifest());
    uses.check();
  }
  return subjects;
}

void check(const BenchState& state, const Common& common) {
  if (state.clients > 1 && state.peer.is_given())
    throw UsageError("--clients: other runtimes are timed one run at a time; leave --against out");
  const std::vector<int> cpus = state.cpus.empty() ? std::vector<int>() : parse_processors("--cpus", state.cpus);
  for (const int threads : parse_counts("--threads", state.threads)) {
    if (state.peer.is_given() && !cpus.empty() && std::ssize(cpus) < threads)
      throw UsageError(fmt::format("--cpus: {} processors are too few for {} threads of both runtimes; name as many",
                                   cpus.size(), threads));
  }
  if (state.seconds_option->count() > 0 && state.turns.seconds <= 0)
    throw UsageError("--seconds: the time must be above 0; an example: --seconds 10");
  if (state.clients > 1 && state.times_steps())
    throw UsageError(
        fmt::format("--clients: steps are timed one run at a time; leave {} out", state.steps ? "--steps" : "--trace"));
  state.peer.require(state.model.path);
  state.inputs.require();
  files_used(state, common).check();
  if (!state.page.empty()) check_bench_page(state.page);
}

std::vector<std::string> heading_of(const BenchState& state) {
  std::vector<std::string> heading{"threads", "best", "median", "p90", "p99", "runs/s", "runs"};
  if (!state.beside.empty()) heading.insert(heading.begin(), "model");
  if (state.peer.is_given())
    heading.insert(heading.end(), {state.peer.name + " best", "median", "ratio of medians", "difference"});
  return heading;
}

// The times measured with all numbers of threads, as they are reported.
struct Reported {
  std::vector<std::vector<std::string>> rows = {};  // rows of the table
  Array<Value> results = {};
  Array<Value> lanes = {};  // lanes of the page
  std::vector<StepTimes> steps = {};
  std::string peer = {};                 // name and version
  std::set<std::string> fallbacks = {};  // lines for regions that fell back to native code
};

// Adds the lanes of all subjects and of the peer to the page.
void add_lanes(const BenchState& state, const std::vector<Subject>& subjects, int threads, const Measured& measured,
               Reported& reported) {
  for (size_t i = 0; i < subjects.size(); ++i) {
    const BenchLane lane{subjects[i].path, threads, measured.processors, measured.per_second[i]};
    reported.lanes.push_back(Value(lane_report(lane, measured.ours[i])));
  }
  if (!state.peer.is_given()) return;
  const Times& times = measured.peer;
  const double per_second = static_cast<double>(times.count()) / times.sum();
  reported.lanes.push_back(Value(lane_report({reported.peer, threads, measured.processors, per_second}, times)));
}

// Measures with each number of threads, until a StopRequest.
Reported measure_all(const BenchState& state, const std::vector<Subject>& subjects, const std::vector<int>& counts) {
  Reported reported{.rows = {heading_of(state)}};
  const artifact::GraphProgram& graph = default_graph(*subjects.front().model.artifact);
  for (const int threads : counts) {
    if (StopRequest::is_made()) break;
    std::string version;
    const Measured measured = state.clients > 1 ? measure_at_once(state, subjects, threads)
                                                : measure_in_turns(state, subjects, threads, version);
    if (!version.empty()) reported.peer = state.peer.name + " " + version;
    for (size_t i = 0; i < subjects.size(); ++i) {
      Report one = add_result(state, subjects[i], i, threads, measured, reported.rows);
      if (state.steps && i == 0) one.set("steps", Value(report_steps(graph, measured.steps)));
      reported.results.push_back(Value(one));
      if (const std::string& text = measured.fallback_texts[i]; !text.empty())
        reported.fallbacks.insert(state.beside.empty() ? text : fmt::format("{}:\n{}", shown(subjects[i].path), text));
    }
    add_lanes(state, subjects, threads, measured, reported);
    reported.steps.push_back(measured.steps);
  }
  return reported;
}

int bench(const BenchState& state, const Common& common) {
  const std::vector<int> counts = parse_counts("--threads", state.threads);
  check(state, common);
  watch_for_interruptions();  // before a compile starts threads
  const std::vector<Subject> subjects = open_subjects(state, counts, common);
  // Another runtime may hang, so then a Ctrl-C ends the program.
  std::optional<StopRequest> stop;
  if (!state.peer.is_given()) stop.emplace();
  const Reported reported = measure_all(state, subjects, counts);
  Report report{{"model", Value(state.model.path)},
                {"rounds", state.turns.seconds > 0 ? Value() : Value(int64_t{state.turns.rounds})},
                {"clients", Value(int64_t{state.clients})},
                {"peer", reported.peer.empty() ? Value() : Value(reported.peer)},
                {"interrupted", Value(StopRequest::is_made())}};
  if (!state.page.empty()) write_bench_page(state.page, state.model.path, report, reported.lanes);
  const artifact::GraphProgram& graph = default_graph(*subjects.front().model.artifact);
  if (!state.trace.empty()) write_trace(state, graph, reported.steps);
  if (common.json) {
    report.set("results", Value(reported.results));
    std::cout << to_json(report);
  } else {
    std::cout << to_table(reported.rows);
    for (const std::string& text : reported.fallbacks) std::cout << text;
    if (state.steps) print_steps(graph, counts, reported.steps);
  }
  if (!StopRequest::is_made()) return HR_OK;
  fmt::print(stderr, "headrace: interrupted (Ctrl-C); these are the times so far\n");
  return 128 + SIGINT;
}

constexpr const char* kBenchFooter =
    "The time is that of the call that runs the model, with inputs and outputs bound before. Our model runs in this\n"
    "process. Another runtime runs in a Python process of its own, which takes its times; docs/benchmarks.md says how\n"
    "each is called, and which cannot bind its outputs. Both have the same number of threads on the same processors,\n"
    "one processor per thread.\n"
    "Threads of both may spin while they wait, so with several threads there is a pause of 20 ms before each run "
    "until\n"
    "those of the other runtime sleep.\n"
    "Ctrl-C ends the rounds and shows the times so far, except with --against.\n"
    "p90 and p99 are the times that 90 % and 99 % of the runs did not exceed; p99 needs 100 runs.\n"
    "Example: headrace bench model.onnx --shape x=1,3,224,224 --threads 1,2 --against onnxruntime\n"
    "         headrace bench new.so --beside old.so --rounds 50\n"
    "         headrace bench model.so --clients 2 --seconds 10\n"
    "         headrace bench model.so --threads 1,2 --html times.html\n"
    "         headrace bench model.so --threads 2 --steps --trace run.json";

// The options that say how long and with how many at once.
void add_turns_to(CLI::App& verb, BenchState& state) {
  CLI::Option* rounds =
      takes(verb.add_option("--rounds", state.turns.rounds,
                            "Number of rounds; each runs the model once, then what it is compared with once")
                ->capture_default_str(),
            {1, 100000, 15});
  state.seconds_option = takes_size(verb.add_option("--seconds", state.turns.seconds,
                                                    "Run for this many seconds instead of a number of rounds"),
                                    "10")
                             ->excludes(rounds);
  takes(verb.add_option("--warmup", state.turns.warmup, "Rounds that run first and are not counted")
            ->capture_default_str(),
        {0, 100000, 3});
  takes(verb.add_option("--clients", state.clients,
                        "Run N copies at once, each with --threads threads of its own, and show their throughput; "
                        "models of --beside are then timed one after another")
            ->capture_default_str(),
        {1, runtime::kMaxWorkers, 2});
}

}  // namespace

Verb add_bench(CLI::App& app, const Common& common) {
  auto state = std::make_shared<BenchState>();
  CLI::App* verb = app.add_subcommand("bench", "Time a model, taking turns with another runtime or other models");
  state->model.add_to(*verb, "A model (.onnx, .relay), or an artifact (.so)");
  verb->add_option("--beside", state->beside,
                   "Another model or artifact, timed in turns with the first, with the same options; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb->add_option("--threads", state->threads, "Numbers of threads to time, as 1,2")->capture_default_str();
  verb->add_option("--cpus", state->cpus,
                   "The processors on which all of them run, as 0,1 (default: as many as there are threads)")
      ->type_name("LIST");
  state->peer.add_to(*verb, "Another runtime on the same model and inputs");
  state->fallback.add_to(*verb);
  add_turns_to(*verb, *state);
  verb->add_flag(
      "--steps", state->steps,
      "Also show for each step of the model, but not of those beside it, the best time in rounds of its own, its share "
      "of all, and the share of the limit: the least time that this machine allows by the time taken (headrace "
      "profile)");
  takes_path(verb->add_option("--trace", state->trace,
                              "A file for a run with each number of threads, as a trace that Chrome and Perfetto show: "
                              "a lane for each thread, with the steps and the parts of them that it ran"),
             "FILE");
  takes_path(verb->add_option("--html", state->page,
                              "A file for a page that plots the times of all rounds and names the machine; it needs no "
                              "other file and no network"),
             "FILE");
  state->inputs.add_random_to(*verb);
  verb->footer(kBenchFooter);
  return [state, &common] { return bench(*state, common); };
}

}  // namespace headrace::tools
