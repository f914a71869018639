#include "tools/headrace/option_text.h"

#include <algorithm>
#include <array>
#include <climits>
#include <charconv>
#include <cmath>

#include "pass/config.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

// `example`: what the option takes.
int64_t parse_int(const std::string& option, std::string_view text, std::string_view example) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(fmt::format("{}: '{}' is not a whole number; an example: {} {}", option, text, option, example));
  return value;
}

// Returns whether all of the text is a finite number.
bool parses_finite(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && std::isfinite(value);
}

constexpr const char* kShapeExample = "x=1,3,224,224";
constexpr const char* kDimExample = "batch=1";

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
  if (at != std::string::npos && at != 0 && at + 1 != text.size()) return {text.substr(0, at), text.substr(at + 1)};
  const bool is_of_backend = option == "--backend-option";
  throw UsageError(fmt::format("{}: '{}' must have the form {}=VALUE; an example: {} {}", option, text,
                               is_of_backend ? "NAME.KEY" : "NAME", option,
                               option == "--shape" ? kShapeExample
                               : option == "--dim" ? kDimExample
                               : is_of_backend     ? "ccompiler.cc=clang"
                                                   : "x=image.npy"));
}

std::vector<int64_t> parse_shape(const std::string& option, const std::string& text) {
  if (text == "scalar") return {};
  std::vector<int64_t> shape;
  for (const std::string_view part : split(text, text.find(',') == std::string::npos ? 'x' : ',')) {
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

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : texts) {
    const auto [name, size] = split_assignment("--dim", text);
    if (!dims.emplace(name, parse_int("--dim", size, kDimExample)).second)
      throw UsageError(fmt::format("--dim: dimension '{}' is given twice", name));
  }
  return dims;
}

Map<std::string, Value> parse_config(const std::vector<std::string>& texts) {
  Map<std::string, Value> config;
  for (const std::string& text : texts) {
    const size_t at = text.find('=');  // keys hold none; values may
    if (at == std::string::npos || at == 0)
      throw UsageError(fmt::format(
          "--config: '{}' must have the form KEY=VALUE; an example: --config relay.FuseOps.max_depth=4", text));
    const std::string key = text.substr(0, at);
    if (config.contains(key)) throw UsageError(fmt::format("--config: '{}' is given twice", key));
    config.set(key, pass::parse_config_value(key, std::string_view(text).substr(at + 1)));
  }
  return config;
}

uint64_t parse_seed(const std::string& option, const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(
        fmt::format("{}: '{}' is not a whole number of 0 or more; an example: {}=7", option, text, option));
  return seed;
}

RandomRange parse_range(const std::string& option, const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ',');
  std::array<double, 2> ends{};
  bool is_range = parts.size() == 2;
  for (size_t i = 0; is_range && i < 2; ++i) is_range = parses_finite(parts[i], ends[i]);
  if (!is_range || ends[0] > ends[1] || !std::isfinite(ends[1] - ends[0]))
    throw UsageError(fmt::format("{}: '{}' must have the form LOW,HIGH with LOW <= HIGH; an example: {}=-1,1", option,
                                 text, option));
  return {ends[0], ends[1]};
}

std::vector<double> parse_numbers(const std::string& option, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string_view part : split(text, ',')) {
    if (!parses_finite(part, numbers.emplace_back()))
      throw UsageError(fmt::format("{}: '{}' must be numbers with commas between; an example: {} 0.485,0.456,0.406",
                                   option, text, option));
  }
  return numbers;
}

std::vector<int> parse_processors(const std::string& option, const std::string& text) {
  std::vector<int> processors;
  for (const std::string_view part : split(text, ',')) {
    const int64_t processor = parse_int(option, part, "0,1");
    const auto given = std::find(processors.begin(), processors.end(), processor);
    if (processor < 0 || processor > INT_MAX || given != processors.end())
      throw UsageError(
          fmt::format("{}: '{}' must be numbers of processors, each once; an example: {} 0,1", option, text, option));
    processors.push_back(static_cast<int>(processor));
  }
  return processors;
}

std::vector<int> parse_counts(const std::string& option, const std::string& text) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const int64_t count = parse_int(option, part, "1,2");
    if (count < 1 || count > runtime::kMaxWorkers)
      throw UsageError(fmt::format("{}: {} is not a number of threads from 1 to {}; an example: {} 1,2", option, count,
                                   runtime::kMaxWorkers, option));
    counts.push_back(static_cast<int>(count));
  }
  return counts;
}

}  // namespace headrace::tools
