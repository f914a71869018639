#include "tools/headrace/run_outputs.h"

#include <climits>
#include <cmath>
#include <filesystem>

#include "driver/output_file.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

namespace {

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

}  // namespace

std::vector<std::string> output_files(const std::string& folder, const std::vector<std::string>& inputs,
                                      const std::string& program, const std::vector<artifact::TensorSpec>& outputs) {
  std::vector<std::string> files(outputs.size());
  if (folder.empty()) return files;
  const std::filesystem::path made = make_folder(folder);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = file_name_of(outputs[i].name);
    files[i] = (made / (name + ".npy")).string();
    // Two names may differ only in what file names cannot hold.
    if (std::find(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(i), files[i]) !=
        files.begin() + static_cast<std::ptrdiff_t>(i))
      files[i] = (made / fmt::format("{}.{}.npy", name, i)).string();
    check_length(std::filesystem::path(files[i]).filename().string(), outputs[i]);
    driver::check_no_input(files[i], files_of("--input", inputs), "an input");
    driver::check_no_input(files[i], {program}, "the program");
  }
  return files;
}

DescribedOutputs describe_outputs(const std::vector<artifact::TensorSpec>& specs, const std::vector<NDArray>& outputs,
                                  const std::vector<std::string>& files) {
  DescribedOutputs described{.rows = {{"output", "type", "min", "max", "mean", "nan, inf", "file"}}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    artifact::TensorSpec spec = specs[i];
    spec.dtype = outputs[i].dtype();
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
    described.report.push_back(Value(one));
    described.rows.push_back(row);
  }
  return described;
}

}  // namespace headrace::tools
