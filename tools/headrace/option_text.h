// What options hold, from their text; `headrace` and `headrace-opt` share it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headrace::tools {

// What options hold, from text: "name=value" as a pair, "1,3,224,224", "1,2". UsageError that names the option.
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);
std::vector<int64_t> parse_shape(const std::string& option, const std::string& text);
// All of --shape: each "x=1,3,224,224". UserError when an input is named twice.
std::map<std::string, std::vector<int64_t>> parse_shapes(const std::vector<std::string>& texts);
std::vector<int> parse_counts(const std::string& option, const std::string& text);

}  // namespace headrace::tools
