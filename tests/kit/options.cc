#include "kit/options.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace headrace::kit {

namespace {

uint64_t parse_seed(std::string_view text) {
  uint64_t seed = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) throw_user_error("'{}' is not a seed", text);
  return seed;
}

Options from_environment() {
  Options result;
  result.program = program_invocation_name;
  if (const char* bless = std::getenv("HEADRACE_BLESS")) result.bless = std::string_view(bless) == "1";
  if (const char* seed = std::getenv("HEADRACE_SEED")) result.seed = parse_seed(seed);
  if (const char* seed = std::getenv("HEADRACE_PROPERTY_SEED")) result.property_seed = parse_seed(seed);
  if (const char* size = std::getenv("HEADRACE_TEST_SIZE")) {
    std::string_view text(size);
    if (text == "list") {
      result.size = TestSize::kList;
    } else if (text == "few") {
      result.size = TestSize::kFew;
    } else if (text == "full") {
      result.size = TestSize::kFull;
    } else if (text != "ci") {
      throw_user_error("HEADRACE_TEST_SIZE is '{}'; it must be list, few, ci or full", text);
    }
  }
  return result;
}

Options& mutable_options() {
  static Options instance = from_environment();
  return instance;
}

}  // namespace

const Options& options() { return mutable_options(); }

void read_options(int& argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--bless") {
      mutable_options().bless = true;
    } else if (argument.starts_with("--seed=")) {
      mutable_options().seed = parse_seed(argument.substr(7));
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
}

int by_size(int ci, int full) { return options().size == TestSize::kFull ? full : ci; }

int case_count(int ci, int full) {
  testing::Test::RecordProperty("cases", options().size == TestSize::kList ? full : by_size(ci, full));
  return options().size == TestSize::kList ? 0 : by_size(ci, full);
}

int by_depth(int depth) { return options().size == TestSize::kFew ? depth / 8 : depth; }

bool is_chosen(size_t i) { return options().size != TestSize::kFew || i % 5 == 0; }

}  // namespace headrace::kit
