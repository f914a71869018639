// The folder of Headrace's own libraries.
#pragma once

#include <string>

namespace headrace {

// Returns the folder of the library (or of the program that it is linked into) that holds this function, where the
// plugins that belong to Headrace lie, too.
std::string library_folder();

}  // namespace headrace
