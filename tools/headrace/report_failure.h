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

}  // namespace headrace::tools
