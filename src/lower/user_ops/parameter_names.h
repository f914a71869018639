// Names that arguments and attributes of users' ops cannot have, since a language that calls them has something else of
// that name. An op may be called from each, whichever it was registered in.
#pragma once

#include <string_view>

namespace headrace::lower {

// Why nobody could give an argument of that name in some language; empty where all can.
std::string_view argument_name_fault(std::string_view name);
// The same of an attribute, which is read from calls too.
std::string_view attr_name_fault(std::string_view name);

}  // namespace headrace::lower
