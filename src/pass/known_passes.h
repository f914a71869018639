// The names that passes go by in this process: what the lists of a context may name.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Passes of the project when the driver registers them, those of users when they are made.
void make_known(const PassInfo& info);

// The configuration that an option of a pass is: "relay.FuseOps.max_depth" of "max_depth".
std::string option_key(std::string_view pass, std::string_view option);
// Makes the keys of a pass' options known (config.h).
void declare_options(const PassInfo& info);

// What a context names passes to.
enum class NamedTo { disable, require };

// UserError for a name, in any spelling, that no pass goes by. A pass of Relay that is not here may be disabled.
void check_pass_names(const std::vector<std::string>& names, NamedTo purpose);

// Relay's passes that are not here, with what is instead.
Map<std::string, std::string> passes_not_here();

}  // namespace headrace::pass
