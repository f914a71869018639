#include "executors/graph/strided_copy.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "artifact/tensor_extent.h"

namespace headrace::executors {

bool copy_strided(const DLTensor& src, std::byte* dst) {
  const int bits = src.dtype.bits * src.dtype.lanes;
  if (bits % 8 != 0) return false;
  const int64_t element = bits / 8;
  int64_t count = 1;
  for (int32_t i = 0; i < src.ndim; ++i) count *= src.shape[i];
  const std::byte* from = static_cast<const std::byte*>(src.data) + src.byte_offset;
  std::array<int64_t, artifact::kMaxRank> at{};
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(dst + n * element, from, static_cast<size_t>(element));
    // The next index in row-major order; `from` follows it.
    for (int32_t i = src.ndim - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      from += src.strides[i] * element;
      if (++at[axis] < src.shape[i]) break;
      from -= src.strides[i] * element * src.shape[i];
      at[axis] = 0;
    }
  }
  return true;
}

}  // namespace headrace::executors
