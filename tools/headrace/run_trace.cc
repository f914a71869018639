#include "tools/headrace/run_trace.h"

#include <numeric>

#include "base/count_of.h"
#include "tools/headrace/timed_model.h"

namespace headrace::tools {

namespace {

constexpr int kTracedRuns = 5;

Value trace_text(const char* value) { return Value(std::string(value)); }

// Writes the events of one run. Trace Event Format: events "X" have a begin and a duration in microseconds, events "M"
// name a process or a lane.
class RunEvents {
 public:
  RunEvents(const artifact::GraphProgram& graph, int64_t process, Array<Value>& events)
      : graph_(graph), process_(process), events_(events) {}

  void add(const TracedRun& run) {
    add_name("process_name", 0, count_of(run.threads, "thread"));
    for (int thread = 0; thread < run.threads; ++thread)
      add_name("thread_name", thread, fmt::format("thread {}", thread));
    uint64_t begin = 0;
    for (size_t i = 0; i < run.step_nanoseconds.size(); ++i) {
      const uint64_t end = begin + run.step_nanoseconds[i];
      add_event({.step = i, .thread = 0, .begin = begin, .end = end}, artifact::name_of(graph_.steps[i].action),
                run.args[i]);
      begin = end;
    }
    for (const executors::PartTime& part : run.parts)
      add_event(part, "part", {{"step", Value(static_cast<int64_t>(part.step))}});
  }

 private:
  void add_name(const char* what, int64_t thread, const std::string& name) {
    events_.push_back(Value(Report{{"name", trace_text(what)},
                                   {"ph", trace_text("M")},
                                   {"pid", Value(process_)},
                                   {"tid", Value(thread)},
                                   {"args", Value(Report{{"name", Value(name)}})}}));
  }
  void add_event(const executors::PartTime& time, std::string_view category, const Report& args) {
    const artifact::Step& step = graph_.steps[time.step];
    events_.push_back(Value(Report{{"name", Value(step.op.empty() ? artifact::callee_of(step.action) : step.op)},
                                   {"cat", Value(std::string(category))},
                                   {"ph", trace_text("X")},
                                   {"ts", Value(static_cast<double>(time.begin) * 1e-3)},
                                   {"dur", Value(static_cast<double>(time.end - time.begin) * 1e-3)},
                                   {"pid", Value(process_)},
                                   {"tid", Value(int64_t{time.thread})},
                                   {"args", Value(args)}}));
  }

  const artifact::GraphProgram& graph_;
  int64_t process_;
  Array<Value>& events_;
};

uint64_t total_of(const std::vector<uint64_t>& nanoseconds) {
  return std::accumulate(nanoseconds.begin(), nanoseconds.end(), uint64_t{0});
}

}  // namespace

TracedRun trace_run(executors::Executor& executor) {
  TracedRun fastest;
  executors::PartTimes parts(executor.num_threads());
  const bool has_parts = executor.num_threads() > 1;
  if (has_parts) executor.record_parts(&parts);
  std::vector<uint64_t> once(executor.num_steps());
  for (int i = 0; i < kTracedRuns; ++i) {
    time_run(executor, once);
    if (i > 0 && total_of(once) >= total_of(fastest.step_nanoseconds)) continue;
    fastest.step_nanoseconds = once;
    fastest.parts = parts.parts();
    fastest.num_lost = parts.num_lost();
  }
  executor.record_parts(nullptr);
  fastest.threads = executor.num_threads();
  return fastest;
}

std::string trace_of(const artifact::GraphProgram& graph, std::span<const TracedRun> runs, Report about) {
  Array<Value> events;
  int64_t process = 0;
  size_t num_lost = 0;
  for (const TracedRun& run : runs) {
    RunEvents(graph, ++process, events).add(run);
    num_lost += run.num_lost;
  }
  about.set("lost_parts", Value(static_cast<int64_t>(num_lost)));
  return to_json({{"traceEvents", Value(events)}, {"displayTimeUnit", trace_text("ns")}, {"otherData", Value(about)}});
}

}  // namespace headrace::tools
