#include "tools/headrace/report_failure.h"

#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "base/exit_code.h"
#include "tools/headrace/shown_text.h"

namespace headrace::tools {

namespace {

std::string describe(const std::exception& error) {
  // Our own say whose fault they are.
  if (dynamic_cast<const Error*>(&error) != nullptr) return error.what();
  if (is_out_of_resources(error)) return "out of memory or threads: allow the process more (ulimit -v, ulimit -u)";
  return fmt::format("a defect: {}", error.what());
}

// A standard error that cannot be written to leaves the exit code to say it.
void print_error(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

int report_failure(std::string_view program, const std::exception& error) {
  print_error(fmt::format("{}: {}\n", program, shown(describe(error), Newlines::kKept)));
  return exit_code_of(error);
}

int report_usage(std::string_view program, std::string_view help, std::string_view message) {
  print_error(fmt::format("{}: {}\n  see: {}\n", program, shown(message, Newlines::kKept), help));
  return HR_USAGE;
}

int finish_output(int code) {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout)
    throw UserError(
        "the standard output cannot be written to; make room on the disk that it is on, or name another file");
  return code;
}

}  // namespace headrace::tools
