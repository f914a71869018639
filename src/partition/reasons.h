// Remedies for reasons of placements (headrace/reason.h).
#pragma once

#include <headrace/reason.h>

#include <string_view>

namespace headrace::partition {

// Returns what would change that an op is not on a backend, or is where it is, for this reason; empty for reasons that
// placements do not have.
std::string_view remedy_of(hr_reason reason);

}  // namespace headrace::partition
