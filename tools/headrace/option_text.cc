#include "tools/headrace/option_text.h"

#include <charconv>

#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

// `example`: what the option takes.
int64_t parse_int(const std::string& option, std::string_view text, std::string_view example) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(fmt::format("{}: '{}' is no whole number; an example: {} {}", option, text, option, example));
  return value;
}

constexpr const char* kShapeExample = "x=1,3,224,224";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace

std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text) {
  // The last `=` that leaves a value: names of ONNX tensors may hold one.
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw UsageError(fmt::format("{}: '{}' has not the form NAME=VALUE; an example: {} {}", option, text, option,
                                 option == "--shape" ? kShapeExample : "x=image.npy"));
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<int64_t> parse_shape(const std::string& option, const std::string& text) {
  if (text == "scalar") return {};
  std::vector<int64_t> shape;
  for (const std::string_view part : split(text, ',')) {
    shape.push_back(parse_int(option, part, kShapeExample));
    if (shape.back() < 0)
      throw UsageError(
          fmt::format("{}: '{}' has a negative dimension; an example: {} {}", option, text, option, kShapeExample));
  }
  return shape;
}

std::map<std::string, std::vector<int64_t>> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : texts) {
    const auto [name, dims] = split_assignment("--shape", text);
    if (!shapes.emplace(name, parse_shape("--shape", dims)).second)
      throw UsageError(fmt::format("--shape: input '{}' is given twice", name));
  }
  return shapes;
}

std::vector<int> parse_counts(const std::string& option, const std::string& text) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const int64_t count = parse_int(option, part, "1,2");
    if (count < 1 || count > runtime::kMaxWorkers)
      throw UsageError(fmt::format("{}: {} is no number of threads from 1 to {}; an example: {} 1,2", option, count,
                                   runtime::kMaxWorkers, option));
    counts.push_back(static_cast<int>(count));
  }
  return counts;
}

}  // namespace headrace::tools
