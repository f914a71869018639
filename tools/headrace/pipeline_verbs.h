// The actions of the verb `pipeline`, each in a file of its own.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::tools {

Verb add_pipeline_run(CLI::App& pipeline, const Common& common);
Verb add_pipeline_bench(CLI::App& pipeline, const Common& common);
Verb add_pipeline_inspect(CLI::App& pipeline, const Common& common);
Verb add_pipeline_split(CLI::App& pipeline, const Common& common);

}  // namespace headrace::tools
