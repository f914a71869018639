#include "headrace/options.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "headrace/tensors.h"

namespace headrace::tools {

namespace {

int64_t parse_int(const std::string& option, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw_user_error("{}: '{}' is no whole number", option, text);
  return value;
}

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
    throw_user_error("{}: '{}' has not the form NAME=VALUE", option, text);
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<int64_t> parse_shape(const std::string& option, const std::string& text) {
  if (text == "scalar") return {};
  std::vector<int64_t> shape;
  for (const std::string_view part : split(text, ',')) {
    shape.push_back(parse_int(option, part));
    if (shape.back() < 0) throw_user_error("{}: '{}' has a negative dimension", option, text);
  }
  return shape;
}

std::vector<int> parse_counts(const std::string& option, const std::string& text) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const int64_t count = parse_int(option, part);
    if (count < 1 || count > 1024) throw_user_error("{}: {} is no number of threads", option, count);
    counts.push_back(static_cast<int>(count));
  }
  return counts;
}

void ModelOptions::add_to(CLI::App& verb, const std::string& what_models) {
  verb.add_option("model", path, what_models)->required()->type_name("FILE");
  verb.add_option("--shape", shapes, "Shape of an input, as x=1,3,224,224 (x=scalar for none); once an input")
      ->type_name("NAME=DIMS")
      ->allow_extra_args(false);
  verb.add_option("--bind", bound, "An input that is compiled in as a constant, from a .npy file; once an input")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  verb.add_option("--target-cpu", cpu, "Processor to compile for, by LLVM's name (default: this machine's)")
      ->type_name("CPU");
  verb.add_option("--target-features", features, "Processor features to add or remove, as +avx2,-avx512f")
      ->type_name("LIST");
  verb.add_option("--opt-level", opt_level, "0: each op by itself; 3: everything")->check(CLI::Range(0, 3));
  verb.add_option("--jobs", jobs, "Threads that compile (0: one a processor); the result does not depend on it")
      ->check(CLI::Range(0, 1024));
  verb.add_option("--disable-pass", disabled_passes, "A pass to leave out, by name; may be repeated")
      ->type_name("PASS")
      ->allow_extra_args(false);
}

driver::LoadOptions ModelOptions::load_options() const {
  driver::LoadOptions options;
  for (const std::string& text : shapes) {
    const auto [name, dims] = split_assignment("--shape", text);
    if (!options.shapes.emplace(name, parse_shape("--shape", dims)).second)
      throw_user_error("--shape: input '{}' is given twice", name);
  }
  for (const std::string& text : bound) {
    const auto [name, file] = split_assignment("--bind", text);
    if (!options.bound.emplace(name, read_tensor(file)).second)
      throw_user_error("--bind: input '{}' is given twice", name);
  }
  return options;
}

driver::CompileOptions ModelOptions::compile_options(const Common& common) const {
  driver::CompileOptions options;
  options.target.cpu = cpu;
  options.target.features = features;
  options.opt_level = opt_level;
  options.jobs = jobs;
  options.disabled_passes = disabled_passes;
  if (!common.quiet && isatty(STDERR_FILENO) != 0) {
    options.progress = [](std::string_view stage, int index, int count) {
      fmt::print(stderr, "\r\033[K[{}/{}] {}{}", index + 1, count, stage, index + 1 == count ? "\r\033[K" : "");
      std::fflush(stderr);
    };
  }
  return options;
}

}  // namespace headrace::tools
