// Names that arguments and attributes of users' ops cannot have, since a language that calls them has something else of
// that name. An op may be called from each, whichever it was registered in.
#pragma once

#include <string_view>

namespace headrace::lower {

// Returns why some language cannot pass an argument of that name; empty when all can.
std::string_view argument_name_fault(std::string_view name);
// Returns the same for an attribute, which must also be readable from calls.
std::string_view attr_name_fault(std::string_view name);

}  // namespace headrace::lower
