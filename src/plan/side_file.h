// Weights that are too many for one ELF file, as a file of their own beside the artifact.
//
// It is a safetensors file: tensor `weight.I` is weight I of the manifest, each content once (weights of equal bytes
// have one tensor, the first), `padding.I` the bytes that align the next one to HR_ALIGNMENT, since the format has no
// holes. `__metadata__` says {"format": "headrace.weights", "version": "1"}. A dtype that the format lacks is written
// as U8, all its bytes in a row.
#pragma once

#include <string>

#include "plan/weight_table.h"

namespace headrace::plan {

// A side file that was written, as the manifest describes it.
struct SideWeights {
  artifact::SideFile file;
  int64_t data_offset = 0;  // place of the table's first byte in the file; a multiple of HR_ALIGNMENT
};

// Writes the weights to an open, empty file, without a copy of them, and reads it once for its hash. `name` is the
// plain file name for the manifest, `path` for messages. Equal tables give equal bytes. UserError naming `path` when it
// cannot be written.
SideWeights write_side_file(const WeightTable& weights, int descriptor, const std::string& name,
                            const std::string& path);

}  // namespace headrace::plan
