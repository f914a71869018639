// headrace run: one run of an artifact on .npy files.
#include <climits>
#include <filesystem>
#include <iostream>

#include "driver/output_file.h"
#include "tools/headrace/output.h"
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

std::filesystem::path make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_user_error("--output-dir: cannot make '{}': {}", folder, error.message());
  return folder;
}

// The lowest, highest and mean of the finite elements, and how many others there are.
struct Summary {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t finite = 0, non_finite = 0;
};

Summary summary_of(const NDArray& tensor) {
  Summary s;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double x = element_as_double(tensor.tensor(), i);
    if (!std::isfinite(x)) {
      ++s.non_finite;
      continue;
    }
    s.low = std::min(s.low, x), s.high = std::max(s.high, x), s.sum += x, ++s.finite;
  }
  return s;
}

// UserError when the system takes no such name.
void check_length(const std::string& file_name, const artifact::TensorSpec& output) {
  constexpr size_t kShown = 40;
  if (file_name.size() <= NAME_MAX) return;
  throw_user_error(
      "--output-dir: the file of output '{}...' would have a name of {} bytes, more than the {} that a system takes; "
      "rename the output in the model, or run without --output-dir",
      shown(std::string_view(output.name).substr(0, kShown)), file_name.size(), NAME_MAX);
}

// Finds the file of each output before the run; empty names without a folder. No file is that of two outputs.
std::vector<std::string> output_files(const RunState& state, const std::vector<artifact::TensorSpec>& outputs) {
  std::vector<std::string> files(outputs.size());
  if (state.folder.empty()) return files;
  const std::filesystem::path folder = make_folder(state.folder);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = file_name_of(outputs[i].name);
    files[i] = (folder / (name + ".npy")).string();
    // Two names may differ only in what file names cannot hold.
    if (std::find(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(i), files[i]) !=
        files.begin() + static_cast<std::ptrdiff_t>(i))
      files[i] = (folder / fmt::format("{}.{}.npy", name, i)).string();
    check_length(std::filesystem::path(files[i]).filename().string(), outputs[i]);
    driver::check_no_input(files[i], files_of("--input", state.inputs), "an input");
    driver::check_no_input(files[i], {state.path}, "the program");
  }
  return files;
}

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
  const std::vector<std::string> files = output_files(state, executor->outputs());
  const std::vector<NDArray> outputs = load::run(*executor, in_order(executor->inputs(), read_named(state.inputs)));
  if (!state.folder.empty()) write_tensors(files, outputs);
  Array<Value> described;
  std::vector<std::vector<std::string>> rows{{"output", "type", "min", "max", "mean", "nan, inf", "file"}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    artifact::TensorSpec spec = executor->outputs()[i];
    spec.shape.assign(outputs[i].shape().begin(), outputs[i].shape().end());
    const std::string& file = files[i];
    Report one{{"name", Value(spec.name)},
               {"dtype", Value(spec.dtype.to_string())},
               {"shape", Value(Shape(spec.shape.begin(), spec.shape.end()))},
               {"file", file.empty() ? Value() : Value(file)}};
    std::vector<std::string> row{spec.name, describe(spec)};
    const Summary s = summary_of(outputs[i]);
    const std::pair<const char*, double> numbers[] = {
        {"min", s.low}, {"max", s.high}, {"mean", s.sum / static_cast<double>(s.finite)}};
    for (const auto& [key, number] : numbers) {
      one.set(key, s.finite > 0 ? Value(number) : Value());
      row.push_back(s.finite > 0 ? fmt::format("{:.6g}", number) : "-");
    }
    one.set("non_finite", Value(s.non_finite));
    row.push_back(fmt::format("{}", s.non_finite));
    row.push_back(file.empty() ? "-" : file);
    described.push_back(Value(one));
    rows.push_back(row);
  }
  if (common.json) {
    std::cout << to_json({{"program", Value(state.program)},
                          {"outputs", Value(described)},
                          {"fallbacks", Value(describe_fallbacks(*executor))}});
  } else {
    std::cout << to_table(rows);
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
