// headrace explain: where each op of a model would run, and why.
#include <fnmatch.h>

#include <iostream>

#include "base/reason_name.h"
#include "driver/explain.h"
#include "driver/output_file.h"
#include "partition/reasons.h"
#include "runtime/thread_pool.h"
#include "tools/headrace/explain_text.h"
#include "tools/headrace/graph_dot.h"
#include "tools/headrace/graph_report.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"
#include "tools/html/page.h"

namespace headrace::tools {

namespace {

struct ExplainState {
  ModelOptions model;
  std::string page;                         // a file for the page; empty: none
  std::string dot;                          // a file for the graph in DOT; empty: none
  std::string saved_plan;                   // a file for the plan; empty: none
  std::vector<std::string> fail_if_native;  // patterns of kinds of ops: "nn.conv2d*"
};

Map<std::string, double> seconds_by_label(const std::vector<partition::LabelSeconds>& costs) {
  Map<std::string, double> seconds;
  for (const partition::LabelSeconds& one : costs) seconds.set(one.label, one.seconds);
  return seconds;
}

// Returns for each label its factor and the factor before limits; none where no whole plans were measured.
Value scales_of(const partition::PlanCost& plan) {
  if (plan.scales.empty()) return {};
  Report scales;
  for (const partition::PlanScale& one : plan.scales)
    scales.set(one.label, Value(Report{{"factor", Value(one.factor)}, {"fitted", Value(one.fitted)}}));
  return Value(scales);
}

// Returns the costs of the plan; null without backends, and where they are not known.
Value cost_of(const driver::Explanation& explained) {
  if (!explained.plan_cost) return {};
  const auto number = [](const std::optional<double>& seconds) { return seconds ? Value(*seconds) : Value(); };
  return Value(Report{{"seconds", Value(explained.plan_cost->seconds)},
                      {"lower_bound", Value(explained.plan_cost->lower_bound)},
                      {"gap", Value(explained.plan_cost->gap())},
                      {"source", Value(explained.plan_cost->source)},
                      {"others", Value(seconds_by_label(explained.plan_cost->others))},
                      {"passed_over", number(explained.plan_cost->passed_over)},
                      {"tried", number(explained.plan_cost->tried)},
                      {"scales", scales_of(*explained.plan_cost)}});
}

Report report_of(const driver::Explanation& explained) {
  Array<Value> placement, regions;
  for (size_t i = 0; i < explained.placement.size(); ++i) {
    const artifact::Placement& one = explained.placement[i];
    const Value costs = explained.is_by_cost ? Value(seconds_by_label(explained.costs[i])) : Value();
    const std::string remedy(partition::remedy_of(one.reason));
    placement.push_back(Value(Report{{"op", Value(one.op)},
                                     {"kind", Value(one.kind)},
                                     {"backend", Value(one.backend)},
                                     {"reason", Value(static_cast<int64_t>(one.reason))},
                                     {"reason_name", Value(std::string(reason_name(one.reason)))},
                                     {"message", Value(one.message)},
                                     {"remedy", remedy.empty() ? Value() : Value(remedy)},
                                     {"region", one.region.empty() ? Value() : Value(one.region)},
                                     {"costs", costs}}));
  }
  for (const partition::Region& region : explained.regions)
    regions.push_back(Value(Report{{"name", Value(region.name)}, {"backend", Value(region.backend)}}));
  return {{"placement", Value(placement)},
          {"regions", Value(regions)},
          {"fewest_regions", explained.fewest_regions > 0 ? Value(explained.fewest_regions) : Value()},
          {"cost", cost_of(explained)},
          {"cost_failure", explained.cost_failure.empty() ? Value() : Value(explained.cost_failure)},
          {"graph", Value(graph_report(explained.graph, explained.placement))}};
}

// Throws for the ops that should not be native, and are: all of them, or the first kMostNamed.
void check_native(const ExplainState& state, const driver::Explanation& explained) {
  for (const std::string& pattern : state.fail_if_native) {
    const auto is_it = [&](const artifact::Placement& one) {
      return fnmatch(pattern.c_str(), one.kind.c_str(), 0) == 0;
    };
    if (std::none_of(explained.placement.begin(), explained.placement.end(), is_it))
      throw_user_error("--fail-if-native '{}': the program has no such op; the pattern is for kinds, as 'nn.conv2d*'",
                       pattern);
  }
  constexpr size_t kMostNamed = 20;
  std::vector<std::string> found;
  for (const artifact::Placement& one : explained.placement) {
    if (one.backend != partition::kNative) continue;
    for (const std::string& pattern : state.fail_if_native) {
      if (fnmatch(pattern.c_str(), one.kind.c_str(), 0) != 0) continue;
      found.push_back(
          fmt::format("--fail-if-native '{}': the {} at {} runs natively: {}", pattern, one.kind, one.op, one.message));
      break;
    }
  }
  if (found.empty()) return;
  const size_t more = found.size() - std::min(found.size(), kMostNamed);
  found.resize(found.size() - more);
  if (more > 0) found.push_back(fmt::format("and {} more", more));
  throw_user_error("{}", fmt::join(found, "\n"));
}

void write_page(const ExplainState& state, const driver::Explanation& explained) {
  const std::string title =
      fmt::format("{} on {}", state.model.path,
                  state.model.backends.empty() ? "native" : fmt::format("{}", fmt::join(state.model.backends, ", ")));
  driver::write_text(state.page,
                     html::make_page(html::explain_page(), shown(title), to_compact_json(report_of(explained))));
}

void write_dot(const ExplainState& state, const driver::Explanation& explained) {
  driver::write_text(state.dot, to_dot(graph_report(explained.graph, explained.placement), state.model.path));
}

int explain(const ExplainState& state, const Common& common) {
  const driver::CompileOptions options = state.model.compile_options(common);
  const driver::Model model = driver::load_model(state.model.path, state.model.load_options(options));
  FileUses uses = state.model.files(common);
  uses.add_inputs("the model", model.files);
  uses.add_output("--html", state.page);
  uses.add_output("--dot", state.dot);
  uses.add_output("--save-plan", state.saved_plan);
  uses.check();
  const driver::Explanation explained = driver::explain(model, options, !state.saved_plan.empty());
  if (explained.plan) driver::write_text(state.saved_plan, partition::print_plan(*explained.plan));
  if (!state.page.empty()) write_page(state, explained);
  if (!state.dot.empty()) write_dot(state, explained);
  if (common.json) {
    std::cout << to_json(report_of(explained));
  } else {
    print_explanation(explained);
  }
  check_native(state, explained);
  return HR_OK;
}

}  // namespace

Verb add_explain(CLI::App& app, const Common& common) {
  auto state = std::make_shared<ExplainState>();
  CLI::App* verb = app.add_subcommand("explain", "Say which backend would compute each op of a model, and why");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  takes_path(verb->add_option("--html", state->page,
                              "A file for a page that shows the graph, each op's backend and the reasons; it needs no "
                              "other file and no network"),
             "FILE");
  takes_path(verb->add_option("--dot", state->dot, "A file for the same graph in DOT, the language of Graphviz"),
             "FILE");
  takes_path(verb->add_option("--save-plan", state->saved_plan,
                              "A file for the plan, which says where each op goes; edit it and give it to --plan"),
             "FILE");
  takes(verb->add_option("--threads", state->model.threads,
                         "Threads that the model is compiled for, which estimated and measured costs depend on"),
        {0, runtime::kMaxWorkers, 2});
  verb->add_option("--fail-if-native", state->fail_if_native,
                   "Fail if an op whose kind matches runs natively, as 'nn.conv2d*'; for continuous integration")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PATTERNS");
  verb->footer("Example: headrace explain resnet50.onnx --backends ccompiler --html resnet50.html");
  return [state, &common] { return explain(*state, common); };
}

}  // namespace headrace::tools
