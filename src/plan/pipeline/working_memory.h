// The working memory of stages: which buffers (split.h) lie in a stage, and which are held at a time.
#pragma once

#include "plan/pipeline/lists.h"

namespace headrace::plan {

// Buffers between numbered nodes or units.
struct BufferTable {
  std::vector<int32_t> producer{};
  std::vector<int64_t> bytes{};
  Lists readers{};                 // without the producer, ascending, each once
  std::vector<int32_t> written{};  // by node or unit: the buffer that it writes; -1 for none
  std::vector<bool> holds{};       // by node or unit: whether buffers that it reads count for it
  Lists made{}, read{};            // by node or unit: buffers

  size_t size() const { return bytes.size(); }
  // Fills `made` and `read` from the other lists.
  void index(size_t count);
};

// Returns the working memory of each of `num_parts` parts: the most that one of its nodes takes by itself and holds of
// buffers that lie in the part. A node of the part -1 is in none. Linear.
std::vector<int64_t> working_memory(const BufferTable& buffers, std::span<const int64_t> own_bytes,
                                    std::span<const int32_t> part_of, size_t num_parts);

}  // namespace headrace::plan
