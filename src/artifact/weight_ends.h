// How much of each weight a program reads.
#pragma once

#include <cstdint>
#include <vector>

#include "artifact/manifest.h"

namespace headrace::artifact {

// Raises ends[i] to the number of bytes of weight i that the program's views reach, for each weight that it reads, and
// makes the list as long as that needs. Call it for several programs of one artifact to learn what they read together.
void raise_weight_ends(const Program& program, std::vector<int64_t>& ends);

}  // namespace headrace::artifact
