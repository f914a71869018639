// headrace run: runs an artifact on tensors from files, or on random ones.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "tools/headrace/comparison.h"
#include "tools/headrace/fallback_option.h"
#include "tools/headrace/input_options.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/interruption.h"
#include "tools/headrace/output.h"
#include "tools/headrace/processors.h"
#include "tools/headrace/run_outputs.h"
#include "tools/headrace/session.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tolerance_options.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/tensors.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

struct RunState {
  std::string path, program = artifact::kDefaultProgram, folder;
  InputOptions inputs;
  OutputValueOptions values;
  int threads = 0;
  std::string cpus;
  int repeat = 1;
  std::vector<std::string> expected;  // "y=y.npy"
  ToleranceOptions tolerance;
  FallbackOption fallback;
  double region_timeout = 0;
};

std::vector<NDArray> run_repeatedly(executors::Executor& executor, const std::vector<NDArray>& inputs, int repeat,
                                    Times& times) {
  std::vector<NDArray> outputs;
  for (int i = 0; i < repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    outputs = load::run(executor, inputs);
    times.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return outputs;
}

using Tensors = std::map<std::string, NDArray>;

// Reads what outputs should be. UserError for a name that no output has.
Tensors read_expected(const RunState& state, const std::vector<artifact::TensorSpec>& specs) {
  if (const std::string option = state.tolerance.given(); !option.empty() && state.expected.empty())
    throw UsageError(fmt::format("{}: is for --expected; add it, or leave both out", option));
  Tensors given = read_named(state.expected, {.option = "--expected"});
  std::vector<std::string> names;
  for (const artifact::TensorSpec& spec : specs) names.push_back(spec.name);
  for (const auto& [name, tensor] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw_user_error("--expected: the program has no output '{}'; it has {}", name, fmt::join(names, ", "));
  }
  return given;
}

// Returns the outputs that have a file, and what it holds.
OutputSets sets_of(const Tensors& given, const std::vector<artifact::TensorSpec>& specs,
                   const std::vector<NDArray>& outputs) {
  OutputSets sets;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto file = given.find(specs[i].name);
    if (file == given.end()) continue;
    sets.names.push_back(specs[i].name);
    sets.ours.push_back(outputs[i]);
    sets.reference.push_back(file->second);
  }
  return sets;
}

std::vector<OutputComparison> compare_with_files(const RunState& state, const OutputSets& sets) {
  return sets.names.empty() ? std::vector<OutputComparison>() : compare_outputs(sets, state.tolerance.read());
}

bool all_near(const std::vector<OutputComparison>& compared) {
  return std::all_of(compared.begin(), compared.end(),
                     [](const OutputComparison& one) { return one.is_near_float64(); });
}

Array<Value> report_of(const std::vector<OutputComparison>& compared) {
  Array<Value> list;
  for (const OutputComparison& one : compared)
    list.push_back(Value(Report{{"name", Value(one.name)},
                                {"error", Value(one.error)},
                                {"limit", Value(one.limit)},
                                {"ok", Value(one.is_near_float64())}}));
  return list;
}

void print(const RunState& state, const std::vector<OutputComparison>& compared, const OutputSets& sets) {
  const bool by_element = state.tolerance.read().elementwise.has_value();
  for (size_t i = 0; i < compared.size(); ++i) {
    const OutputComparison& one = compared[i];
    if (sets.ours[i].shape() != sets.reference[i].shape()) {
      print_out("{}: MISMATCH, the output is {} and its file has {}\n", shown(one.name), describe(sets.ours[i]),
                describe(sets.reference[i]));
      continue;
    }
    print_out("{}: {}, {:.3g} from its file relative to {}, the limit is {:.3g}\n", shown(one.name),
              one.is_near_float64() ? "ok" : "MISMATCH", one.error,
              by_element ? "the tolerance of each element" : "its largest element", one.limit);
  }
}

void print(const Times& times) {
  if (times.count() > 1)
    print_out("{} runs: best {}, median {}\n", times.count(), show_seconds(times.best()), show_seconds(times.median()));
}

// Returns the files of the outputs. UserError where one would replace a file that the run reads.
std::vector<std::string> find_outputs(const RunState& state, const artifact::Manifest& manifest,
                                      const std::vector<artifact::TensorSpec>& outputs, const Common& common) {
  FileUses uses;
  add_artifact(uses, state.path, manifest);
  uses.add_inputs("an input", files_of("--input", state.inputs.files()));
  uses.add_inputs("an expected output", files_of("--expected", state.expected));
  uses.add_inputs("the list of labels", {state.values.labels_file()});
  uses.add_inputs("a backend", common.plugins);
  std::vector<std::string> files = output_files(state.folder, outputs, uses);
  uses.check();
  return files;
}

int run(const RunState& state, const Common& common) {
  if (state.inputs.has_images()) watch_for_interruptions();
  // Before threads are started, because they inherit it.
  std::optional<ProcessorScope> processors;
  if (!state.cpus.empty()) processors.emplace(parse_processors("--cpus", state.cpus));
  const auto artifact = open_artifact(state.path);
  const auto executor = load::make_executor(
      artifact, state.program,
      {.threads = state.threads, .fallback = state.fallback.read(), .region_timeout_seconds = state.region_timeout});
  const std::vector<std::string> files = find_outputs(state, artifact->manifest(), executor->outputs(), common);
  const Tensors expected = read_expected(state, executor->outputs());
  const OutputValues values = state.values.read();
  check_labels(values.labels, executor->outputs());
  Times times;
  const std::vector<NDArray> outputs =
      run_repeatedly(*executor, state.inputs.read(executor->inputs()), state.repeat, times);
  if (!state.folder.empty()) write_tensors(files, outputs);
  const OutputSets sets = sets_of(expected, executor->outputs(), outputs);
  const std::vector<OutputComparison> compared = compare_with_files(state, sets);
  const DescribedOutputs described = describe_outputs(executor->outputs(), outputs, files, values);
  if (common.json) {
    std::cout << to_json({{"program", Value(state.program)},
                          {"runs", Value(int64_t{state.repeat})},
                          {"best_seconds", Value(times.best())},
                          {"median_seconds", Value(times.median())},
                          {"outputs", Value(described.report)},
                          {"compared", Value(report_of(compared))},
                          {"fallbacks", Value(fallbacks_report(*executor))}});
  } else {
    std::cout << to_table(described.rows);
    for (const std::string& line : described.values) print_out("{}\n", shown(line));
    print(times);
    print(state, compared, sets);
    std::cout << fallbacks_text(*executor);
  }
  return all_near(compared) ? HR_OK : HR_MISMATCH;
}

void add_expected_to(CLI::App& verb, RunState& state) {
  verb.add_option("--expected", state.expected,
                  "Compare an output with a .npy file, or all that FILE.npz names; exit code 5 where one differs")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  state.tolerance.add_to(verb,
                         "Largest error that --expected allows, relative to the largest element of the file (default: "
                         "depends on the dtype, as in headrace verify without --against)");
}

}  // namespace

Verb add_run(CLI::App& app, const Common& common) {
  auto state = std::make_shared<RunState>();
  CLI::App* verb = app.add_subcommand("run", "Run an artifact");
  verb->add_option("artifact", state->path, "The artifact, as headrace compile writes it")
      ->required()
      ->type_name("FILE");
  state->inputs.add_to(*verb);
  takes_path(
      verb->add_option("--output-dir", state->folder, "Folder that gets each output as NAME.npy; made when missing"),
      "FOLDER");
  state->values.add_to(*verb);
  takes(verb->add_option("--repeat", state->repeat,
                         "Run N times, and show the best and the median time, the first run included"),
        {1, 1'000'000, 10})
      ->capture_default_str();
  verb->add_option("--program", state->program, "The program of the file to run")->capture_default_str();
  takes(
      verb->add_option("--threads", state->threads, "Threads (0: what the artifact says); results do not depend on it"),
      {0, runtime::kMaxWorkers, 2});
  verb->add_option("--cpus", state->cpus, "The processors on which it runs, as 0,1 (default: any)")->type_name("LIST");
  add_expected_to(*verb, *state);
  state->fallback.add_to(*verb);
  takes_size(verb->add_option("--region-timeout", state->region_timeout,
                              "Seconds that a backend's region may take before it counts as failed (0: no limit)")
                 ->capture_default_str(),
             "2.5", {0, executors::kMaxRegionTimeout});
  verb->footer(
      "Example: headrace run model.so --input x=image.npy --top 5\n"
      "         headrace run model.so --input x=photo.jpg --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --top 5 \\\n"
      "           --labels names.txt\n"
      "         headrace run model.so --seed 7 --range=-1,1 --repeat 10 --output-dir out/\n"
      "         headrace run model.so --input x=x.npy --expected y=y.npy");
  return [state, &common] { return run(*state, common); };
}

}  // namespace headrace::tools
