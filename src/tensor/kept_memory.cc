#include "tensor/kept_memory.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "tensor/data_type.h"

namespace headrace {
namespace {

struct Kept {
  std::atomic<bool> is_any = false;
  std::mutex mutex;
  std::set<uintptr_t> addresses;  // those of first elements
};

Kept& kept() {
  static Kept& table = *new Kept;  // memory is freed until the process ends
  return table;
}

uintptr_t first_element(const DLTensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
}

size_t dense_bytes(const DLTensor& tensor) {
  size_t bytes = DataType(tensor.dtype).bytes();
  for (int32_t i = 0; i < tensor.ndim; ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
  return bytes;
}

}  // namespace

void keep_memory_of(const DLTensor& tensor) {
  if (tensor.data == nullptr || dense_bytes(tensor) == 0) return;
  const std::scoped_lock lock(kept().mutex);
  kept().addresses.insert(first_element(tensor));
  kept().is_any.store(true, std::memory_order_release);
}

bool holds_kept_memory(const void* begin, size_t size_bytes) noexcept {
  if (!kept().is_any.load(std::memory_order_acquire) || size_bytes == 0) return false;
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const std::scoped_lock lock(kept().mutex);
  const auto found = kept().addresses.lower_bound(first);
  return found != kept().addresses.end() && *found - first < size_bytes;
}

bool holds_kept_memory(const DLTensor& tensor) noexcept {
  if (!kept().is_any.load(std::memory_order_acquire) || tensor.data == nullptr) return false;
  return holds_kept_memory(reinterpret_cast<const void*>(first_element(tensor)), dense_bytes(tensor));
}

}  // namespace headrace
