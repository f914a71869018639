// Mutations of a valid file, for tests that a reader survives anything.
#pragma once

#include <string>
#include <string_view>

#include "kit/random.h"

namespace headrace::kit {

// Returns `valid` after 1 to 4 of: a bit flipped, a byte replaced (often by a value at an edge), a block removed,
// doubled, overwritten by another block, or the end cut off. Half of the places lie in the first 512 bytes, where
// headers are.
std::string mutate(std::string_view valid, Random& random);

}  // namespace headrace::kit
