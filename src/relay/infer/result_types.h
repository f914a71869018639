// The types of results, written into the functions of a module.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Annotates each relay function of the module, and those inside of it, with the type of its result, where it has no
// annotation or one to be inferred (`_`), as Relay's InferType does; the pass InferType calls it. The module must be
// typed. Returns the module itself when nothing changes; else the changed functions are new nodes, which have no
// checked type until the next inference.
IRModule with_result_types(const IRModule& module);

}  // namespace headrace::relay
