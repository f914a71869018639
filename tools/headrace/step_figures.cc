#include "tools/headrace/step_figures.h"

#include "tools/headrace/timed_model.h"

namespace headrace::tools {

namespace {

Value trace_text(const char* value) { return Value(std::string(value)); }

}  // namespace

StepFigures figures_of(const artifact::GraphProgram& graph, const cost::Limits& limits, size_t step, double seconds) {
  StepFigures figures{.step = graph.steps[step], .gflops = {}, .least = {}};
  figures.bytes = static_cast<double>(bytes_of(graph, figures.step));
  const auto operations = static_cast<double>(figures.step.operations);
  figures.gigabytes = figures.bytes / seconds * 1e-9;
  if (operations > 0) figures.gflops = operations / seconds * 1e-9;
  figures.least = cost::least_time(limits, operations, figures.bytes);
  figures.share_of_limit = figures.least.seconds / seconds;
  return figures;
}

void add_figures(Report& report, const StepFigures& figures) {
  report.set("operations", Value(figures.step.operations));
  report.set("bytes", Value(static_cast<int64_t>(figures.bytes)));
  report.set("bound", Value(std::string(figures.least.bound)));
  report.set("share_of_limit", Value(figures.share_of_limit));
}

std::string limit_text(const StepFigures& figures) {
  return fmt::format("{:.0f} % of {}", 100 * figures.share_of_limit, figures.least.bound);
}

// Trace Event Format: events "X" have a begin and a duration in microseconds, events "M" name a lane.
std::string trace_of(const artifact::GraphProgram& graph, std::span<const TraceLane> lanes) {
  Array<Value> events;
  int64_t lane_number = 0;
  for (const TraceLane& lane : lanes) {
    ++lane_number;
    events.push_back(Value(Report{{"name", trace_text("thread_name")},
                                  {"ph", trace_text("M")},
                                  {"pid", Value(int64_t{1})},
                                  {"tid", Value(lane_number)},
                                  {"args", Value(Report{{"name", Value(lane.name)}})}}));
    double begin = 0;
    for (size_t i = 0; i < lane.seconds.size(); ++i) {
      const artifact::Step& step = graph.steps[i];
      events.push_back(Value(Report{{"name", Value(step.op.empty() ? artifact::callee_of(step.action) : step.op)},
                                    {"cat", Value(std::string(artifact::name_of(step.action)))},
                                    {"ph", trace_text("X")},
                                    {"ts", Value(begin * 1e6)},
                                    {"dur", Value(lane.seconds[i] * 1e6)},
                                    {"pid", Value(int64_t{1})},
                                    {"tid", Value(lane_number)},
                                    {"args", Value(lane.args[i])}}));
      begin += lane.seconds[i];
    }
  }
  return to_json({{"traceEvents", Value(events)}, {"displayTimeUnit", trace_text("ns")}});
}

}  // namespace headrace::tools
