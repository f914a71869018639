#include "tools/headrace/step_figures.h"

#include "tools/headrace/timed_model.h"

namespace headrace::tools {

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

}  // namespace headrace::tools
