// What verbs print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/headrace/verbs.h"

namespace headrace::tools {

// One JSON object, two spaces a level, with a newline. Values: numbers, strings, booleans, None, Array, Map, Shape.
std::string to_json(const Report& report);

// Rows with columns aligned; the first row is the heading.
std::string to_table(const std::vector<std::vector<std::string>>& rows);

// "12.3 MB", "512 bytes"; "1.24 ms".
std::string show_bytes(int64_t bytes);
std::string show_seconds(double seconds);

}  // namespace headrace::tools
