// The verbs (subcommands) of the program `headrace`.
#pragma once

#include <CLI/CLI.hpp>
#include <headrace/status.h>

#include <functional>

#include "object/map.h"
#include "object/string.h"

namespace headrace::tools {

// The options of all verbs.
struct Common {
  bool json = false;                 // one JSON object on stdout instead of text
  bool quiet = false;                // no progress
  std::vector<std::string> plugins;  // paths of shared libraries with backends
  std::vector<std::string> program;  // the words that start this program again, for child processes
};

// The results of a verb, which are printed as JSON. The verb itself prints them as text.
using Report = Map<std::string, Value>;

// Runs a verb and returns the exit code, a number of hr_status. Each function below adds the verb's subcommand and its
// options to `app`, and returns the function that runs it.
using Verb = std::function<int()>;
Verb add_compile(CLI::App& app, const Common& common);
Verb add_run(CLI::App& app, const Common& common);
Verb add_explain(CLI::App& app, const Common& common);
Verb add_profile(CLI::App& app, const Common& common);
Verb add_plan(CLI::App& app, const Common& common);
Verb add_inspect(CLI::App& app, const Common& common);
Verb add_bench(CLI::App& app, const Common& common);
Verb add_verify(CLI::App& app, const Common& common);
Verb add_pipeline(CLI::App& app, const Common& common);
Verb add_backend(CLI::App& app, const Common& common);
Verb add_cache(CLI::App& app, const Common& common);
Verb add_targets(CLI::App& app, const Common& common);
Verb add_help(CLI::App& app, const Common& common);
Verb add_completion(CLI::App& app, const Common& common);

}  // namespace headrace::tools
