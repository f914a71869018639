#include "ops/loops/index_value.h"

#include <limits>

namespace headrace::ops {

namespace {

bool is_past_int64(const NDArray& indices, int64_t i) {
  return indices.dtype() == DataType::uint(64) && element_as_int(indices.tensor(), i) < 0;
}

}  // namespace

int64_t index_at(const NDArray& indices, int64_t i) {
  return is_past_int64(indices, i) ? std::numeric_limits<int64_t>::max() : element_as_int(indices.tensor(), i);
}

int64_t wrapped_index_at(const NDArray& indices, int64_t i, int64_t n) {
  const int64_t index = element_as_int(indices.tensor(), i);
  if (is_past_int64(indices, i)) return static_cast<int64_t>(static_cast<uint64_t>(index) % static_cast<uint64_t>(n));
  return (index % n + n) % n;
}

std::string index_text(const NDArray& indices, int64_t i) {
  const int64_t index = element_as_int(indices.tensor(), i);
  return is_past_int64(indices, i) ? fmt::format("{}", static_cast<uint64_t>(index)) : fmt::format("{}", index);
}

int64_t checked_index_at(const EvalInput& input, const NDArray& indices, int64_t i, int64_t n, bool from_end) {
  const int64_t index = index_at(indices, i), at = from_end && index < 0 ? index + n : index;
  if (at < 0 || at >= n)
    throw_at(input.call.span, input.call.as_op()->name,
             fmt::format("index {} is out of range for an axis of {}", index_text(indices, i), n));
  return at;
}

}  // namespace headrace::ops
