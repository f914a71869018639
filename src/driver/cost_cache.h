// The costs that profiles keep on this machine: one table (partition/placement/cost_table.h) for each processor and
// number of threads, of all models that were profiled.
//
//   $HEADRACE_CACHE/costs/znver4-1.json, else $XDG_CACHE_HOME/headrace/costs/..., else ~/.cache/headrace/costs/...
//
// Placement by cost reads the table where the options name the costs `kCachedCosts`.
#pragma once

#include "partition/placement/cost_table.h"

namespace headrace::driver {

// Stands for these costs where a file of costs is named (CompileOptions::costs). A file of that name is "./cache".
inline constexpr const char* kCachedCosts = "cache";

// Returns the file. UserError where the environment names no folder.
std::string cost_cache_path(const std::string& cpu, int64_t threads);

// Returns the text of the file. UserError that says how to measure, where there is none.
partition::NamedText read_cost_cache(const std::string& cpu, int64_t threads);

// Returns the table that the file holds; one without costs where there is no file. UserError for a file that is not
// such a table, or of another version.
partition::CostTable kept_costs(const std::string& cpu, int64_t threads);

// Adds the costs to the file of the table's processor and threads, in place of those that it has of the same calls and
// plans, and makes its folder, which only the owner may enter. Processes that do so at once take turns. UserError where
// that fails, and as kept_costs. Returns the number of costs of calls in the file.
size_t keep_costs(const partition::CostTable& table);

}  // namespace headrace::driver
