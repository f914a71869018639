#include "tools/headrace/report_failure.h"

#include <cstdio>

#include "base/error.h"
#include "base/exit_code.h"

namespace headrace::tools {

namespace {

std::string describe(const std::exception& error) {
  // Our own say whose fault they are.
  if (dynamic_cast<const Error*>(&error) != nullptr) return error.what();
  if (is_out_of_resources(error)) return "out of memory or threads: allow the process more (ulimit -v, ulimit -u)";
  return fmt::format("a defect: {}", error.what());
}

}  // namespace

int report_failure(std::string_view program, const std::exception& error) {
  fmt::print(stderr, "{}: {}\n", program, describe(error));
  return exit_code_of(error);
}

int report_usage(std::string_view program, std::string_view help, std::string_view message) {
  fmt::print(stderr, "{}: {}\n  see: {}\n", program, message, help);
  return HR_USAGE;
}

}  // namespace headrace::tools
