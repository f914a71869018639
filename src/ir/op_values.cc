#include "ir/op_values.h"

#include "base/error.h"

namespace headrace {

void OpValues::set(size_t slot, std::any value) {
  auto owned = value.has_value() ? std::make_unique<const std::any>(std::move(value)) : nullptr;
  HEADRACE_CHECK(block_of(slot) < kBlocks, "slot {} of an op is past the last block", slot);
  std::lock_guard lock(mutex_);
  std::atomic<Slot*>& block = blocks_[block_of(slot)];
  if (block.load(std::memory_order_relaxed) == nullptr) {
    if (owned == nullptr) return;
    owned_blocks_.push_back(std::make_unique<Slot[]>(kFirstBlock << block_of(slot)));
    block.store(owned_blocks_.back().get(), std::memory_order_release);
  }
  const std::any* const shown = owned.get();
  if (owned != nullptr) owned_values_.push_back(std::move(owned));
  block.load(std::memory_order_relaxed)[offset_of(slot)].store(shown, std::memory_order_release);
}

}  // namespace headrace
