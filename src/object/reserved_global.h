// Names in the process-wide table of functions (object/function.h) that are not for everybody.
#pragma once

#include <string>

namespace headrace {

// Makes every later register_global of this name a UserError with `reason`, a sentence, even with `override`. A
// function that has the name already keeps it.
void reserve_global(const std::string& name, const std::string& reason);

}  // namespace headrace
