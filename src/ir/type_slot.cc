#include "ir/type_slot.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>

namespace headrace {

// Returns the pointer of a slot that threads share as an atomic. Once set it is read as a plain reference, since it is
// never written again.
static std::atomic_ref<Object*> pointer_of(const Type& type) {
  static_assert(std::is_standard_layout_v<Type> && sizeof(Type) == sizeof(Object*));
  return std::atomic_ref<Object*>(*reinterpret_cast<Object**>(const_cast<Type*>(&type)));
}

// Slots share a few locks, so that a node pays for none.
static std::mutex& lock_of(const TypeSlot& slot) {
  static std::array<std::mutex, 64> locks;
  return locks[reinterpret_cast<uintptr_t>(&slot) / sizeof(Object) % locks.size()];
}

bool TypeSlot::is_set() const { return pointer_of(type_).load(std::memory_order_acquire) != nullptr; }

// Does not use compare-and-swap: ThreadSanitizer treats a failed one as a write, and reports threads that read the
// slot.
const Type& TypeSlot::offer(Type type) {
  HEADRACE_CHECK(type.defined(), "a null type is offered");
  if (is_set()) return type_;
  const std::scoped_lock lock(lock_of(*this));
  if (!is_set()) pointer_of(type_).store(type.release(), std::memory_order_release);
  return type_;
}

}  // namespace headrace
