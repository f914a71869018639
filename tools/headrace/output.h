// Formats and prints the output of verbs.
#pragma once

#include <fmt/ranges.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "tools/headrace/verbs.h"

namespace headrace::tools {

// Formats a report as a JSON object with two spaces for each level and a final newline. Values may be numbers, strings,
// booleans, None, Array, Map and Shape.
std::string to_json(const Report& report);
// Formats a report on one line.
std::string to_compact_json(const Report& report);

// Reads JSON of the kinds that reports have; a float where a number has a point or an exponent. UserError that calls
// the text `name` for any other text, and for one nested deeper than 64 levels.
Value from_json(std::string_view text, const std::string& name);

// Formats rows with aligned columns. Escapes the cells (shown_text.h). The first row is the heading.
std::string to_table(std::vector<std::vector<std::string>> rows);

// Prints to the standard output. Does not throw if writing fails; finish_output() reports that at the program's end.
template <typename... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  std::cout << fmt::format(format, std::forward<Args>(args)...);
}

// "12.3 MB", "512 bytes"; "1.24 ms".
std::string show_bytes(int64_t bytes);
std::string show_seconds(double seconds);

}  // namespace headrace::tools
