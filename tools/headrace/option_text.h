// Parses the values of command-line options, for `headrace` and `headrace-opt`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headrace::tools {

// Parse "name=value" to a pair, "1,3,224,224" to a shape, and "1,2" to counts. Throw UsageError that names the option.
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);
std::vector<int64_t> parse_shape(const std::string& option, const std::string& text);
// Parses all values of --shape, each "x=1,3,224,224". Throws UserError if an input is named twice.
std::map<std::string, std::vector<int64_t>> parse_shapes(const std::vector<std::string>& texts);
std::vector<int> parse_counts(const std::string& option, const std::string& text);

}  // namespace headrace::tools
