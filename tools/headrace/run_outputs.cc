#include "tools/headrace/run_outputs.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "driver/output_file.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"

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

std::string show_element(const NDArray& tensor, int64_t i) {
  return fmt::format("{:.6g}", element_as_double(tensor.tensor(), i));
}

// Adds the first elements to the report and to the lines.
void add_first(const NDArray& tensor, int count, Report& one, DescribedOutputs& described) {
  const int64_t num_shown = std::min<int64_t>(count, tensor.num_elements());
  Array<Value> values;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < num_shown; ++i) {
    values.push_back(Value(element_as_double(tensor.tensor(), i)));
    texts.push_back(show_element(tensor, i));
  }
  one.set("values", Value(values));
  if (num_shown == 0) return;
  const bool is_all = num_shown == tensor.num_elements();
  described.values.push_back(fmt::format("{}: {}{}", one.at("name").as<std::string>(), fmt::join(texts, ", "),
                                         is_all ? "" : fmt::format(", ... ({} elements)", tensor.num_elements())));
}

// The places of the largest elements of a row, the largest first and the first of equal ones first; NaN is the least.
std::vector<int64_t> largest_of(const NDArray& tensor, int64_t begin, int64_t width, int count) {
  std::vector<int64_t> places(static_cast<size_t>(width));
  std::iota(places.begin(), places.end(), 0);
  const auto value = [&](int64_t place) {
    const double x = element_as_double(tensor.tensor(), begin + place);
    return std::isnan(x) ? -INFINITY : x;
  };
  const auto end = places.begin() + static_cast<std::ptrdiff_t>(std::min<int64_t>(count, width));
  std::partial_sort(places.begin(), end, places.end(), [&](int64_t a, int64_t b) {
    const double x = value(a), y = value(b);
    return x != y ? x > y : a < b;
  });
  places.erase(end, places.end());
  return places;
}

// Adds the largest elements of each row; the lines are those of the first rows.
void add_largest(const NDArray& tensor, const OutputValues& shown_values, Report& one, DescribedOutputs& described) {
  constexpr int64_t kMostLines = 16;
  Array<Value> rows;
  const int64_t width = tensor.shape().empty() ? 1 : tensor.shape().back();
  const bool has_labels = std::ssize(shown_values.labels) == width;
  const int64_t num_rows = width == 0 ? 0 : tensor.num_elements() / width;
  for (int64_t row = 0; row < num_rows; ++row) {
    Array<Value> places;
    std::vector<std::string> texts;
    for (const int64_t place : largest_of(tensor, row * width, width, shown_values.top)) {
      const std::string label = has_labels ? shown_values.labels[static_cast<size_t>(place)] : "";
      Report element{{"index", Value(place)},
                     {"value", Value(element_as_double(tensor.tensor(), row * width + place))}};
      if (has_labels) element.set("label", Value(label));
      places.push_back(Value(element));
      const std::string name = has_labels ? fmt::format("{} ({})", place, label) : std::to_string(place);
      texts.push_back(fmt::format("{}: {}", name, show_element(tensor, row * width + place)));
    }
    rows.push_back(Value(places));
    if (row < kMostLines)
      described.values.push_back(
          fmt::format("{}, largest of row {}: {}", one.at("name").as<std::string>(), row, fmt::join(texts, ", ")));
  }
  if (num_rows > kMostLines) described.values.push_back(fmt::format("... ({} rows)", num_rows));
  one.set("top", Value(rows));
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

std::vector<std::string> output_files(const std::string& folder, const std::vector<artifact::TensorSpec>& outputs,
                                      FileUses& uses) {
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
    uses.add_output("--output-dir", files[i]);
  }
  return files;
}

std::vector<std::string> read_labels(const std::string& file) {
  const auto mapped = MappedFile::open(file, "file of labels");
  std::string text(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  if (!is_utf8(text)) throw_user_error("--labels: '{}' is not UTF-8 text", file);
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) throw_user_error("--labels: '{}' holds no labels", file);
  std::vector<std::string> labels(1);
  for (const char c : text) {
    if (c == '\n') labels.emplace_back();
    if (c != '\n' && c != '\r') labels.back().push_back(c);
  }
  return labels;
}

void check_labels(const std::vector<std::string>& labels, const std::vector<artifact::TensorSpec>& outputs) {
  const auto fits = [&](const artifact::TensorSpec& output) {
    return !output.shape.empty() && output.shape.back() == std::ssize(labels);
  };
  if (labels.empty() || std::any_of(outputs.begin(), outputs.end(), fits)) return;
  std::vector<std::string> types;
  for (const artifact::TensorSpec& output : outputs)
    types.push_back(fmt::format("{} ({})", shown(output.name), describe(output)));
  throw_user_error("--labels: the file has {} lines, one for each label, but no output has rows of so many: {}",
                   labels.size(), fmt::join(types, ", "));
}

void OutputValueOptions::add_to(CLI::App& verb) {
  takes(verb.add_option("--values", values_.first, "Show the first N elements of each output"), {0, 1'000'000, 8})
      ->capture_default_str();
  takes(verb.add_option("--top", values_.top,
                        "Show the N largest elements of each row of the last axis, with their places"),
        {0, 1'000'000, 5});
  takes_path(
      verb.add_option("--labels", labels_, "A text file with the name of each place of a row, one per line, for --top"),
      "FILE");
}

OutputValues OutputValueOptions::read() const {
  OutputValues values = values_;
  if (labels_.empty()) return values;
  if (values.top == 0) throw UsageError("--labels: is for the elements that --top shows; add --top 5");
  values.labels = read_labels(labels_);
  return values;
}

DescribedOutputs describe_outputs(const std::vector<artifact::TensorSpec>& specs, const std::vector<NDArray>& outputs,
                                  const std::vector<std::string>& files, const OutputValues& values) {
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
    add_first(outputs[i], values.first, one, described);
    if (values.top > 0) add_largest(outputs[i], values, one, described);
    described.report.push_back(Value(one));
    described.rows.push_back(row);
  }
  return described;
}

}  // namespace headrace::tools
