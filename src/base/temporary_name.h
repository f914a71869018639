// The names that mkstemp and mkdtemp complete.
#pragma once

#include <string>
#include <utility>

namespace headrace {

// `prefix` and the six places that the C library fills in.
inline std::string temporary_name(std::string prefix) { return std::move(prefix) + std::string(6, 'X'); }

}  // namespace headrace
