// The constants of a region whose code takes them apart from itself: a function f beside a function __init_f.
#pragma once

#include "partition/backend.h"

namespace headrace::driver {

// The suffix of the function relay.ext.NAME.constant_updater, which may replace the constants of a backend's regions:
// (Function, symbol) -> Map[str, NDArray], by name. Without it they are those of the function, in the order of
// evaluation, as SYMBOL_const_0, SYMBOL_const_1 ...
inline constexpr const char* kConstantUpdater = ".constant_updater";

// Returns a module that gives `code` its constants (runtime/const_module.h), or `code` itself if it takes none. The
// names and the order are those of its function get_const_vars; without that all constants, in their order. The
// region's own constants stay as they are, for its native form. UserError for a name that no constant has, an updater
// that returns something else, and constants of an updater that the code does not take.
runtime::Module with_constants(const std::string& backend, const partition::RegionSource& region,
                               const runtime::Module& code);

}  // namespace headrace::driver
