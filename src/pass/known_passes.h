// The names of passes in this process, which lists of a context may contain.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Adds a pass to these names. The driver adds the project's passes; a user's pass is added when it is created.
void make_known(const PassInfo& info);

// Returns the configuration key of a pass's option: "relay.FuseOps.max_depth" for "max_depth".
std::string option_key(std::string_view pass, std::string_view option);
// Makes the keys of a pass' options known (config.h).
void declare_options(const PassInfo& info);

// The list of a context that names a pass.
enum class NamedTo { disable, require };

// Checks that each name, in any spelling, is a pass. A pass of Relay that does not exist here may be disabled.
// UserError.
void check_pass_names(const std::vector<std::string>& names, NamedTo purpose);

// Returns the passes of Relay that do not exist here, each with its replacement.
Map<std::string, std::string> passes_not_here();

}  // namespace headrace::pass
