// Parses the values of command-line options, for `headrace` and `headrace-opt`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "object/map.h"

namespace headrace::tools {

// Parse "name=value" to a pair, "1,3,224,224" to a shape, and "1,2" to counts. Throw UsageError that names the option.
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);
std::vector<int64_t> parse_shape(const std::string& option, const std::string& text);
// Parses all values of --dim, each "batch=1". Throws UserError if a dimension is named twice.
std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& texts);
// Parses all values of --shape, each "x=1,3,224,224" or "x=1x3x224x224", as tables print it. Throws UserError if an
// input is named twice.
std::map<std::string, std::vector<int64_t>> parse_shapes(const std::vector<std::string>& texts);
// Parses all values of --config, each "relay.FuseOps.max_depth=4": options of passes. Throws UsageError for a key that
// is given twice, UserError for an unknown key and a value of another type.
Map<std::string, Value> parse_config(const std::vector<std::string>& texts);
// Parses a seed, a whole number of 0 or more.
uint64_t parse_seed(const std::string& option, const std::string& text);
// The range of random elements, both ends included.
struct RandomRange {
  double low, high;
};
// Parses "-1,1". Throws UsageError for a range that is empty or not finite.
RandomRange parse_range(const std::string& option, const std::string& text);
// Parses "0.485,0.456,0.406": finite numbers, at least one.
std::vector<double> parse_numbers(const std::string& option, const std::string& text);
// Parses numbers of processors, "0,1": some, each once.
std::vector<int> parse_processors(const std::string& option, const std::string& text);
std::vector<int> parse_counts(const std::string& option, const std::string& text);

}  // namespace headrace::tools
