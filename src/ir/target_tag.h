// Tags: short names of targets, as cpu/znver4 for llvm -mcpu=znver4.
#pragma once

#include "ir/target.h"

namespace headrace {

// Registers a name, GROUP/NAME, for a target. UserError for a name of another form, for one that another target has
// (unless `override` is set), and for a config that no target can be made of.
void register_target_tag(const std::string& name, const Map<std::string, Value>& config, bool override = false);

// Returns the target of that tag, with the tag in its `tag`; UserError that suggests similar names when there is none.
Target get_tagged_target(std::string_view name);
std::vector<std::string> target_tags();

}  // namespace headrace
