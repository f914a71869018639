#include "plan/weight_table.h"

#include "artifact/trailer.h"

namespace headrace::plan {

int64_t WeightTable::add(const NDArray& tensor) {
  const NDArray dense = tensor.to_dense();
  const std::span<const std::byte> bytes = dense.bytes();
  const std::string hash = artifact::content_hash({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const std::vector<int64_t> shape(dense.shape().begin(), dense.shape().end());
  const auto [entry, is_new] =
      by_content_.emplace(fmt::format("{} {} {}", dense.dtype(), fmt::join(shape, ","), hash), weights_.size());
  if (is_new) {
    // Equal bytes of another shape share their place.
    const auto [place, is_new_content] = by_content_.emplace(hash, weights_.size());
    const int64_t nbytes = static_cast<int64_t>(bytes.size());
    const int64_t offset = is_new_content ? nbytes_ : weights_[place->second].offset;
    weights_.push_back({hash, offset, nbytes, dense.dtype(), shape});
    tensors_.push_back(dense);
    if (is_new_content) nbytes_ += (nbytes + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT;
  }
  return static_cast<int64_t>(entry->second);
}

}  // namespace headrace::plan
