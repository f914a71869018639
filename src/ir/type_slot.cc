#include "ir/type_slot.h"

#include <atomic>
#include <type_traits>

namespace headrace {

// The pointer that a reference is, for a slot that threads share: what is set is read as any other reference, since it
// is never written again.
static std::atomic_ref<Object*> pointer_of(const Type& type) {
  static_assert(std::is_standard_layout_v<Type> && sizeof(Type) == sizeof(Object*));
  return std::atomic_ref<Object*>(*reinterpret_cast<Object**>(const_cast<Type*>(&type)));
}

bool TypeSlot::is_set() const { return pointer_of(type_).load(std::memory_order_acquire) != nullptr; }

const Type& TypeSlot::offer(Type type) {
  HEADRACE_CHECK(type.defined(), "a null type is offered");
  Object* there = nullptr;
  if (pointer_of(type_).compare_exchange_strong(there, type.object(), std::memory_order_acq_rel,
                                                std::memory_order_acquire))
    static_cast<void>(type.release());  // its reference is the slot's now
  return type_;
}

}  // namespace headrace
