// How many ops of a program each backend computes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artifact/manifest.h"
#include "driver/compile.h"

namespace headrace::tools {

// The name of a backend, as placements have it, and the number of its ops.
using OpCounts = std::vector<std::pair<std::string, int>>;

// Counts the ops of each backend, first of those in `named`, which may have none, then of others as they come.
OpCounts count_ops(const std::vector<artifact::Placement>& placement, const std::vector<std::string>& named = {});

// Counts those of a compiled program: first of native code, then of the backends that the options name.
OpCounts count_ops(const artifact::Manifest& manifest, const driver::CompileOptions& options);

Map<std::string, int64_t> counts_report(const OpCounts& counts);
// "18 ops by native, 0 by null"
std::string to_text(const OpCounts& counts);

}  // namespace headrace::tools
