// The backends of this project.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "partition/backend.h"

namespace headrace::driver {

// Registers each backend that this build has. Called once.
void register_all_backends();

// Returns the backend of that name, as partition::find_backend. UserError for one that there is not: it lists those
// that there are, names the build option of one that was left out, and says which ones only Python has.
std::shared_ptr<const partition::Backend> require_backend(const std::string& name);

// Returns the backends that were left out of this build, with the build option of each.
std::vector<std::pair<std::string, std::string>> left_out_backends();

}  // namespace headrace::driver
