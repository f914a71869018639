// Names of reason codes (headrace/reason.h), for people.
#pragma once

#include <headrace/reason.h>

#include <string_view>

namespace headrace {

// Returns the name of a reason without its prefix: "OP_UNSUPPORTED". Empty for a number that the list does not have,
// such as one from the file of a later version.
std::string_view reason_name(hr_reason reason);

}  // namespace headrace
