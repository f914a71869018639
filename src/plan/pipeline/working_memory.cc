#include "plan/pipeline/working_memory.h"

#include <algorithm>

namespace headrace::plan {

void BufferTable::index(size_t count) {
  Lists producers;
  for (const int32_t one : producer) {
    producers.items.push_back(one);
    producers.close();
  }
  made = inverse(producers, count);
  read = inverse(readers, count);
}

std::vector<int64_t> working_memory(const BufferTable& buffers, std::span<const int64_t> own_bytes,
                                    std::span<const int32_t> part_of, size_t num_parts) {
  std::vector<int64_t> needs(own_bytes.begin(), own_bytes.end());
  std::vector<int32_t> part_of_buffer(buffers.size(), -1);
  for (size_t buffer = 0; buffer < buffers.size(); ++buffer) {
    const int32_t part = part_of[static_cast<size_t>(buffers.producer[buffer])];
    const auto is_there = [&](int32_t reader) { return part_of[static_cast<size_t>(reader)] == part; };
    const std::span<const int32_t> readers = buffers.readers[buffer];
    if (part < 0 || !std::all_of(readers.begin(), readers.end(), is_there)) continue;
    part_of_buffer[buffer] = part;
    for (const int32_t reader : readers) {
      const auto at = static_cast<size_t>(reader);
      if (buffers.holds[at]) needs[at] += buffers.bytes[buffer];
    }
  }
  std::vector<int64_t> most(num_parts, 0);
  for (size_t node = 0; node < needs.size(); ++node) {
    if (part_of[node] < 0) continue;
    const int32_t written = buffers.written[node];
    if (written >= 0 && part_of_buffer[static_cast<size_t>(written)] == part_of[node])
      needs[node] += buffers.bytes[static_cast<size_t>(written)];
    int64_t& part = most[static_cast<size_t>(part_of[node])];
    part = std::max(part, needs[node]);
  }
  return most;
}

}  // namespace headrace::plan
