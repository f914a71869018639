// Compiles the regions of a program by the code generators of their backends.
#pragma once

#include "partition/place.h"
#include "runtime/module.h"

namespace headrace::driver {

// The prefix of the global functions that compile regions: relay.ext.NAME takes a region as a Relay function, with the
// attribute global_symbol, and returns a module that has a function of that name. The function is given a DLTensor* for
// each tensor of the parameters, then for each of the results.
inline constexpr const char* kRegionCompilerPrefix = "relay.ext.";

// Returns a module for each region whose backend has such a function, in their order. Every other region must find its
// function in `modules`, which the model brings, or among the global functions. UserError that says what to register
// for one that does not, and for a compiler that returns something else than a module.
std::vector<runtime::Module> compile_regions(std::span<const partition::Region> regions,
                                             std::span<const runtime::Module> modules);

}  // namespace headrace::driver
