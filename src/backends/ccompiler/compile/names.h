// Names of regions as names of C functions.
#pragma once

#include <string>

#include "object/array.h"

namespace headrace::backends::ccompiler {

// Returns why the C text of a region cannot have functions of this name, beside the regions that `taken` names; empty
// where it can. Functions of the region f are f, f_, f__wrapper_, f_0, f_1 and so on; its constants are f_c0, f_c1.
std::string name_fault(const std::string& name, const Array<std::string>& taken);

}  // namespace headrace::backends::ccompiler
