// Names that a user may have meant, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// Returns the names of `known`, in their order, that are at most two letters away from `name`, differ from it in case
// alone, or end in it after `separator`: "nn.conv2d" for "conv2d" and '.'. Returns none for a name of 100 letters or
// more.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known, char separator);

// Returns "did you mean a or b?" where some of `known` are near, with '.' as the separator, and otherwise "WHAT a, b,
// c", the whole list.
std::string near_or_all(std::string_view name, const std::vector<std::string>& known, std::string_view what);

}  // namespace headrace
