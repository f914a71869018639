// States what an artifact needs of the processor that runs it.
#pragma once

#include <cstddef>
#include <string>

#include "artifact/manifest.h"

namespace headrace::tools {

// Returns the processors that can run the target's code: "any aarch64 processor", "an x86_64 processor of level
// x86-64-v3", "an aarch64 processor with dotprod, lse". Features that the architecture or the level implies are not
// named; of the others at most `most`, and then their number.
std::string cpu_needs(const artifact::Target& target, size_t most);

// Returns why this machine cannot run the target's code: it is of another architecture, or its processor lacks
// features. Empty when it can.
std::string why_not_here(const artifact::Target& target);

}  // namespace headrace::tools
