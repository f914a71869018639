// Mistakes in a pattern because of which a part of it matches no program.
#pragma once

#include <string>

#include "relay/patterns/pattern.h"

namespace headrace::relay {

// Returns the first call of an op in the pattern with another number of arguments than the op takes, or with a
// condition about an attribute that the op does not have, as a sentence with the text of that part: "nn.relu takes 1
// argument and has 2 in nn.relu(_, _)". Empty where there is none. Ops whose attributes are known when they are called
// (relay/user_attrs.h) are not checked for those. Call after all ops are registered.
std::string mistake_in(const DFPattern& pattern);

}  // namespace headrace::relay
