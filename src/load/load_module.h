// Opens modules from files of any format.
#pragma once

#include <string>
#include <string_view>

#include "runtime/module.h"

namespace headrace::load {

// Returns `format` if it is not empty, otherwise the extension of the path. A name without an extension, and a
// versioned one such as lib.so.1.2, mean "so".
std::string format_of(const std::string& path, const std::string& format);

// The prefix of the names of file loaders, which is followed by the format.
inline constexpr std::string_view kLoadFilePrefix = "runtime.module.loadfile_";
inline constexpr const char* kWhyNoLoaderOfSo =
    "Headrace opens the format so itself, and would never ask another loader; name your format otherwise";

// Opens the module in the file `path`. Opens an artifact ("so") with load_artifact_module. For any other format, calls
// the global function "runtime.module.loadfile_<format>" with path and format, which returns a Module. Throws UserError
// if there is no such function (the message lists the formats), if it returns something else or asks for the same file
// again, and for an artifact if a loader of "so" was registered before Headrace could refuse it. Rethrows the errors of
// loaders.
runtime::Module load_module(const std::string& path, const std::string& format = "");

// Loads a module of kind `key` from the bytes of SaveToBinary, with the function "runtime.module.loadbinary_<key>".
// Throws UserError, which lists the known kinds, if there is no such function.
runtime::Module load_binary(const std::string& key, const std::string& bytes);

}  // namespace headrace::load
