#include "artifact/weight_ends.h"

#include <algorithm>

#include "artifact/tensor_extent.h"

namespace headrace::artifact {

void raise_weight_ends(const Program& program, std::vector<int64_t>& ends) {
  for (const Entry& entry : program.graph.entries) {
    if (entry.place != Place::kWeight) continue;
    const auto index = static_cast<size_t>(entry.index);
    if (index >= ends.size()) ends.resize(index + 1);
    const int64_t nbytes = view_nbytes(entry.dtype, entry.shape, entry.strides).value_or(0);
    ends[index] = std::max(ends[index], entry.byte_offset + nbytes);
  }
}

}  // namespace headrace::artifact
