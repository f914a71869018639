// How the programs end when something went wrong.
#pragma once

#include <exception>
#include <string_view>

namespace headrace::tools {

// Says on the standard error what stopped `program`, and gives its exit code. Control characters of names in the
// message are escaped (shown_text.h).
int report_failure(std::string_view program, const std::exception& error);
// The same for a wrong command line; `help` is the command that says more.
int report_usage(std::string_view program, std::string_view help, std::string_view message);

// Ends the standard output and gives `code`. UserError when it cannot be written to, now or before: print to std::cout,
// which keeps that in mind, and not by fmt::print, which throws what nobody would take for a full disk.
int finish_output(int code);

}  // namespace headrace::tools
