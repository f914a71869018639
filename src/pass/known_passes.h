// The names that passes go by in this process: what the lists of a context may name.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Passes of the project when the driver registers them, those of users when they are made.
void make_known(const PassInfo& info);

// UserError for a name, in any spelling, that no pass goes by. `purpose` is what the names are for: "leave out".
void check_pass_names(const std::vector<std::string>& names, std::string_view purpose);

}  // namespace headrace::pass
