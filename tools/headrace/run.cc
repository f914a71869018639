// headrace run: one run of an artifact on .npy files.
#include <iostream>

#include "tools/headrace/output.h"
#include "tools/headrace/run_outputs.h"
#include "tools/headrace/session.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/tensors.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

struct RunState {
  std::string path, program = artifact::kDefaultProgram, folder;
  std::vector<std::string> inputs;
  int threads = 0;
  std::string fallback = "native";
  double region_timeout = 0;
};

Array<Value> describe_fallbacks(const executors::Executor& executor) {
  Array<Value> list;
  for (const executors::FallbackEvent& event : executor.fallbacks()) {
    list.push_back(Value(Report{{"region", Value(event.region)},
                                {"backend", Value(event.backend)},
                                {"reason", Value(static_cast<int64_t>(event.reason))},
                                {"message", Value(event.message)}}));
  }
  return list;
}

int run(const RunState& state, const Common& common) {
  const auto fallback = state.fallback == "none" ? executors::Fallback::none : executors::Fallback::native;
  const auto executor = load::make_executor(
      open_artifact(state.path), state.program,
      {.threads = state.threads, .fallback = fallback, .region_timeout_seconds = state.region_timeout});
  const std::vector<std::string> files = output_files(state.folder, state.inputs, state.path, executor->outputs());
  const std::vector<NDArray> outputs = load::run(*executor, in_order(executor->inputs(), read_named(state.inputs)));
  if (!state.folder.empty()) write_tensors(files, outputs);
  const DescribedOutputs described = describe_outputs(executor->outputs(), outputs, files);
  if (common.json) {
    std::cout << to_json({{"program", Value(state.program)},
                          {"outputs", Value(described.report)},
                          {"fallbacks", Value(describe_fallbacks(*executor))}});
  } else {
    std::cout << to_table(described.rows);
    for (const executors::FallbackEvent& event : executor->fallbacks())
      print_out("region {} ran natively, not by {}: {}\n", shown(event.region), shown(event.backend),
                shown(event.message));
  }
  return HR_OK;
}

}  // namespace

Verb add_run(CLI::App& app, const Common& common) {
  auto state = std::make_shared<RunState>();
  CLI::App* verb = app.add_subcommand("run", "Run an artifact once");
  verb->add_option("artifact", state->path, "What compile wrote")->required()->type_name("FILE");
  verb->add_option("--input,-i", state->inputs, "An input from a .npy file; once an input")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  takes_path(
      verb->add_option("--output-dir", state->folder, "Folder that gets each output as NAME.npy; made when missing"),
      "FOLDER");
  verb->add_option("--program", state->program, "Which program of the file")->capture_default_str();
  takes(
      verb->add_option("--threads", state->threads, "Threads (0: what the artifact says); results do not depend on it"),
      {0, runtime::kMaxWorkers, 2});
  verb->add_option("--fallback", state->fallback,
                   "Where a backend is missing or fails: native (its region runs natively) or none (an error)")
      ->check(CLI::IsMember({"native", "none"}))
      ->capture_default_str();
  verb->add_option("--region-timeout", state->region_timeout,
                   "How long a backend's region may take before it counts as failed (0: any time)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, executors::kMaxRegionTimeout).description(""))
      ->capture_default_str();
  verb->footer("Example: headrace run model.so --input x=image.npy --output-dir out/");
  return [state, &common] { return run(*state, common); };
}

}  // namespace headrace::tools
