#include "tensor/strided_copy.h"

#include <array>
#include <cstring>

namespace headrace {

void copy_strided(const DLTensor& src, size_t item_bytes, std::byte* dst) {
  const auto item = static_cast<int64_t>(item_bytes);
  int64_t count = 1;
  for (int32_t i = 0; i < src.ndim; ++i) count *= src.shape[i];
  const std::byte* from = static_cast<const std::byte*>(src.data) + src.byte_offset;
  std::array<int64_t, kMaxStridedRank> at{};
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(dst + n * item, from, item_bytes);
    // The next index in row-major order; `from` follows it.
    for (int32_t i = src.ndim - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      from += src.strides[i] * item;
      if (++at[axis] < src.shape[i]) break;
      from -= src.strides[i] * item * src.shape[i];
      at[axis] = 0;
    }
  }
}

}  // namespace headrace
