// The names that mkstemp and mkdtemp complete.
#pragma once

#include <string>
#include <utility>

namespace headrace {

// Returns `prefix` with the six X that the C library replaces.
inline std::string temporary_name(std::string prefix) { return std::move(prefix) + std::string(6, 'X'); }

}  // namespace headrace
