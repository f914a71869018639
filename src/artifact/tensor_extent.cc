#include "artifact/tensor_extent.h"

namespace headrace::artifact {

static bool valid_shape(std::span<const int64_t> shape) {
  if (shape.size() > kMaxRank) return false;
  for (int64_t extent : shape) {
    if (extent < 0) return false;
  }
  return true;
}

static bool has_no_elements(std::span<const int64_t> shape) {
  for (int64_t extent : shape) {
    if (extent == 0) return true;
  }
  return false;
}

// Returns the bytes of `count` elements, or nothing above the limit.
static std::optional<int64_t> elements_nbytes(DataType dtype, int64_t count) {
  int64_t nbytes = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(dtype.bytes()), count, &nbytes) || nbytes > kMaxTensorBytes)
    return std::nullopt;
  return nbytes;
}

std::optional<int64_t> tensor_nbytes(DataType dtype, std::span<const int64_t> shape) {
  return view_nbytes(dtype, shape, {});
}

std::optional<int64_t> view_nbytes(DataType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (dtype.bits() < 1 || dtype.lanes() < 1 || !valid_shape(shape)) return std::nullopt;
  if (!strides.empty() && strides.size() != shape.size()) return std::nullopt;
  if (has_no_elements(shape)) return 0;
  int64_t last = 0;   // index of the last element
  int64_t inner = 1;  // contiguous stride of the dimension at hand
  for (size_t i = shape.size(); i-- > 0;) {
    const int64_t stride = strides.empty() ? inner : strides[i];
    int64_t reach = 0;
    if (stride < 0 || __builtin_mul_overflow(stride, shape[i] - 1, &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return std::nullopt;
    if (__builtin_mul_overflow(inner, shape[i], &inner)) return std::nullopt;
  }
  if (__builtin_add_overflow(last, int64_t{1}, &last)) return std::nullopt;
  return elements_nbytes(dtype, last);
}

}  // namespace headrace::artifact
