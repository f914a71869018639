// headrace pipeline: streams of requests through the stages of a pipeline.
#include "tools/headrace/pipeline_verbs.h"

namespace headrace::tools {

Verb add_pipeline(CLI::App& app, const Common& common) {
  CLI::App* verb = app.add_subcommand("pipeline", "Split models into stages, and run streams through them");
  verb->require_subcommand(1);
  verb->footer(
      "Example: headrace pipeline split model.onnx --stages 2 -o pipe.so --shape x=1,3,224,224\n"
      "         headrace pipeline run pipe.so --requests 100");
  std::vector<std::pair<CLI::App*, Verb>> actions;
  for (auto* add : {add_pipeline_split, add_pipeline_run, add_pipeline_bench, add_pipeline_inspect}) {
    Verb action = add(*verb, common);
    actions.emplace_back(verb->get_subcommands({}).back(), std::move(action));
  }
  return [actions = std::move(actions)] {
    for (const auto& [action, run] : actions) {
      if (action->parsed()) return run();
    }
    return static_cast<int>(HR_USAGE);
  };
}

}  // namespace headrace::tools
