// Hashes of content: XXH3-64, the same in every process.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace {

inline uint64_t hash_bytes(const void* data, size_t size_bytes, uint64_t seed = 0) {
  return size_bytes == 0 ? XXH3_64bits_withSeed("", 0, seed) : XXH3_64bits_withSeed(data, size_bytes, seed);
}
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
// Depends on the order: combine(combine(h, a), b) differs from combine(combine(h, b), a).
inline uint64_t hash_combine(uint64_t hash, uint64_t next) {
  const uint64_t both[2] = {hash, next};
  return XXH3_64bits(both, sizeof both);
}

}  // namespace headrace
