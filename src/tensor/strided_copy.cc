#include "tensor/strided_copy.h"

#include <array>
#include <cstring>

namespace headrace {

namespace {

// Calls `visit` with the address of each element and its number in row-major order.
template <typename Visit>
void for_each_element(const DLTensor& tensor, size_t item_bytes, Visit visit) {
  const auto item = static_cast<int64_t>(item_bytes);
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  std::byte* element = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  std::array<int64_t, kMaxStridedRank> at{};
  for (int64_t n = 0; n < count; ++n) {
    visit(element, n * item);
    // The next index in row-major order; `element` follows it.
    for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      element += tensor.strides[i] * item;
      if (++at[axis] < tensor.shape[i]) break;
      element -= tensor.strides[i] * item * tensor.shape[i];
      at[axis] = 0;
    }
  }
}

}  // namespace

void copy_strided(const DLTensor& src, size_t item_bytes, std::byte* dst) {
  for_each_element(src, item_bytes,
                   [&](const std::byte* element, int64_t offset) { std::memcpy(dst + offset, element, item_bytes); });
}

void copy_to_strided(const std::byte* src, size_t item_bytes, const DLTensor& dst) {
  for_each_element(dst, item_bytes,
                   [&](std::byte* element, int64_t offset) { std::memcpy(element, src + offset, item_bytes); });
}

}  // namespace headrace
