#include "tools/headrace/stream_files.h"

#include "tools/headrace/tensors.h"

namespace headrace::tools {

FileUses stream_files(const StreamOptions& options, const Common& common) {
  FileUses uses;
  uses.add_inputs("the pipeline", {options.path});
  uses.add_inputs("an input", files_of("--input", options.inputs.files()));
  uses.add_inputs("a backend", common.plugins);
  uses.add_output("--trace", options.trace);
  return uses;
}

}  // namespace headrace::tools
