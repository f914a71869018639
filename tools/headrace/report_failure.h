// Reports errors at the end of the programs.
#pragma once

#include <exception>
#include <string_view>

namespace headrace::tools {

// Prints the error that stopped `program` to stderr and returns the exit code. Escapes control characters in the
// message (shown_text.h).
int report_failure(std::string_view program, const std::exception& error);
// Prints the error of a wrong command line to stderr and returns the exit code. `help` is the command that shows the
// usage.
int report_usage(std::string_view program, std::string_view help, std::string_view message);

// Flushes the standard output and returns `code`. Throws UserError if this write or an earlier one failed. Print to
// std::cout, which remembers failed writes, and not with fmt::print, whose exception does not mention the full disk.
int finish_output(int code);

}  // namespace headrace::tools
