// headrace run: one run of an artifact on .npy files.
#include <filesystem>
#include <iostream>

#include "tools/headrace/output.h"
#include "tools/headrace/session.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

namespace {

struct State {
  std::string path, program = artifact::kDefaultProgram, folder;
  std::vector<std::string> inputs;
  int threads = 0;
};

std::filesystem::path make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_user_error("--output-dir: cannot make '{}': {}", folder, error.message());
  return folder;
}

// The lowest, highest and mean element.
Report summary(const NDArray& tensor) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double x = element_as_double(tensor.tensor(), i);
    low = std::min(low, x), high = std::max(high, x), sum += x;
  }
  if (tensor.num_elements() == 0) return {};
  return {{"min", Value(low)}, {"max", Value(high)}, {"mean", Value(sum / static_cast<double>(tensor.num_elements()))}};
}

int run(const State& state, const Common& common) {
  const auto executor = make_executor(open_artifact(state.path), state.program, state.threads);
  const artifact::Program& program = executor->runner().program();
  const std::vector<NDArray> outputs = load::run(*executor, read_inputs(program.inputs, state.inputs));
  Array<Value> described;
  std::vector<std::vector<std::string>> rows{{"output", "type", "min", "max", "mean", "file"}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const artifact::TensorSpec& spec = program.outputs[i];
    std::string file;
    if (!state.folder.empty()) {
      file = (make_folder(state.folder) / (file_name_of(spec.name) + ".npy")).string();
      write_tensor(file, outputs[i]);
    }
    Report one{{"name", Value(spec.name)},
               {"dtype", Value(spec.dtype.to_string())},
               {"shape", Value(Shape(spec.shape.begin(), spec.shape.end()))},
               {"file", file.empty() ? Value() : Value(file)}};
    std::vector<std::string> row{spec.name, describe(spec)};
    const Report numbers = summary(outputs[i]);
    for (const char* key : {"min", "max", "mean"}) {
      const auto number = numbers.get(key);
      one.set(key, number ? *number : Value());
      row.push_back(number ? fmt::format("{:.6g}", number->as<double>()) : "-");
    }
    row.push_back(file.empty() ? "-" : file);
    described.push_back(Value(one));
    rows.push_back(row);
  }
  if (common.json) {
    std::cout << to_json({{"program", Value(program.name)}, {"outputs", Value(described)}});
  } else {
    std::cout << to_table(rows);
  }
  return kOk;
}

}  // namespace

Verb add_run(CLI::App& app, const Common& common) {
  auto state = std::make_shared<State>();
  CLI::App* verb = app.add_subcommand("run", "Run an artifact once");
  verb->add_option("artifact", state->path, "What compile wrote")->required()->type_name("FILE");
  verb->add_option("--input,-i", state->inputs, "An input from a .npy file; once an input")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  verb->add_option("--output-dir", state->folder, "Folder that gets each output as NAME.npy; made when missing")
      ->type_name("FOLDER");
  verb->add_option("--program", state->program, "Which program of the file")->capture_default_str();
  verb->add_option("--threads", state->threads, "Threads (0: what the artifact says); results do not depend on it")
      ->check(CLI::Range(0, 1024));
  verb->footer("Example: headrace run model.so --input x=image.npy --output-dir out/");
  return [state, &common] { return run(*state, common); };
}

}  // namespace headrace::tools
