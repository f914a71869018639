// Opening a module from a file, whatever its format.
#pragma once

#include <string>
#include <string_view>

#include "runtime/module.h"

namespace headrace::load {

// `format` when it says one, else the ending of the path; "so" for a name without one and for one with a version
// behind it, lib.so.1.2.
std::string format_of(const std::string& path, const std::string& format);

// The prefix of the names of file loaders, which is followed by the format.
inline constexpr std::string_view kLoadFilePrefix = "runtime.module.loadfile_";
inline constexpr const char* kWhyNoLoaderOfSo =
    "Headrace opens the format so itself, and would never ask another loader; name your format otherwise";

// The module in the file `path`. An artifact ("so") is opened by load_artifact_module; of any other format the global
// function "runtime.module.loadfile_<format>" is called with path and format, and gives a Module. UserError: no such
// function (the message lists the formats there are), a function that gives something else or asks for the same file
// again, what a loader throws, an artifact where somebody registered a loader of "so" before Headrace could refuse it.
runtime::Module load_module(const std::string& path, const std::string& format = "");

// The module of kind `key` in `bytes`, which SaveToBinary gave: by the function "runtime.module.loadbinary_<key>".
// UserError when there is none; the message lists the kinds there are.
runtime::Module load_binary(const std::string& key, const std::string& bytes);

}  // namespace headrace::load
