// The verbs of the program `headrace`: each adds itself to the command line and gives what it runs.
#pragma once

#include <CLI/CLI.hpp>
#include <headrace/status.h>

#include <functional>

#include "object/map.h"
#include "object/string.h"

namespace headrace::tools {

// What every verb is told.
struct Common {
  bool json = false;   // one JSON object on stdout instead of text
  bool quiet = false;  // no progress
};

// What a verb found: printed as JSON, or as text by the verb itself.
using Report = Map<std::string, Value>;

// Adds the verb's sub-command and options; the function runs it and gives the exit code, a number of hr_status.
using Verb = std::function<int()>;
Verb add_compile(CLI::App& app, const Common& common);
Verb add_run(CLI::App& app, const Common& common);
Verb add_inspect(CLI::App& app, const Common& common);
Verb add_bench(CLI::App& app, const Common& common);
Verb add_verify(CLI::App& app, const Common& common);
Verb add_targets(CLI::App& app, const Common& common);

}  // namespace headrace::tools
