// Names in the process-wide table of functions (object/function.h) that are not for everybody.
#pragma once

#include <string>

namespace headrace {

// From now on register_global of this name is a UserError with `reason`, a sentence, even with `override`. What the
// name has stays.
void reserve_global(const std::string& name, const std::string& reason);

}  // namespace headrace
