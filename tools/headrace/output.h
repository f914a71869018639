// What verbs print.
#pragma once

#include <fmt/ranges.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "tools/headrace/verbs.h"

namespace headrace::tools {

// One JSON object, two spaces a level, with a newline. Values: numbers, strings, booleans, None, Array, Map, Shape.
std::string to_json(const Report& report);

// Rows with columns aligned, their cells as shown_text.h shows names; the first row is the heading.
std::string to_table(std::vector<std::vector<std::string>> rows);

// Prints to the standard output. Never throws when it is full: the program finds that at its end, once for all verbs.
template <typename... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  std::cout << fmt::format(format, std::forward<Args>(args)...);
}

// "12.3 MB", "512 bytes"; "1.24 ms".
std::string show_bytes(int64_t bytes);
std::string show_seconds(double seconds);

}  // namespace headrace::tools
