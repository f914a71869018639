#include "ir/type_slot.h"

namespace headrace {

TypeSlot& TypeSlot::operator=(TypeSlot&& other) noexcept {
  type_ = std::exchange(other.type_, nullptr);
  state_.store(type_ ? kSet : kEmpty, std::memory_order_release);
  other.state_.store(kEmpty, std::memory_order_release);
  return *this;
}

const Type& TypeSlot::offer(Type type) {
  HEADRACE_CHECK(type.defined(), "a null type is offered");
  int32_t state = kEmpty;
  if (state_.compare_exchange_strong(state, kBeingSet, std::memory_order_acquire)) {
    type_ = std::move(type);
    state_.store(kSet, std::memory_order_release);
    state_.notify_all();
    return type_;
  }
  while (state == kBeingSet) {  // for as long as another thread moves a pointer
    state_.wait(kBeingSet, std::memory_order_acquire);
    state = state_.load(std::memory_order_acquire);
  }
  return type_;
}

}  // namespace headrace
