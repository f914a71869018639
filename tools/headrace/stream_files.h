// The files of the actions of `pipeline` that run requests.
#pragma once

#include "tools/headrace/file_uses.h"
#include "tools/headrace/pipeline_stream.h"

namespace headrace::tools {

// Returns the files that the options and --plugin name: the pipeline, the inputs and the trace. Throws UsageError for
// an input without a file.
FileUses stream_files(const StreamOptions& options, const Common& common);

}  // namespace headrace::tools
