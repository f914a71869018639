// Registers the passes of this process, which a PassContext may disable or require by name.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Registers a pass; the first of a name is kept. The driver registers the project's passes; a user's pass is
// registered when it is created.
void make_known(const PassInfo& info);

// Returns the configuration key of a pass's option: "relay.FuseOps.max_depth" for "max_depth".
std::string option_key(std::string_view pass, std::string_view option);
// Declares the configuration keys of a pass's options (config.h).
void declare_options(const PassInfo& info);

// The list of a context that names a pass.
enum class NamedTo { disable, require };

// Throws UserError for a name that, in any spelling, is not a pass. A pass of Relay that does not exist here may be
// disabled but not required.
void check_pass_names(const std::vector<std::string>& names, NamedTo purpose);

// Returns the passes of Relay that do not exist here, each with the reason or with what replaces it.
Map<std::string, std::string> passes_not_here();

}  // namespace headrace::pass
