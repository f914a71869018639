// The values of an op's attributes, by the slot of their key (ir/op_key.h).
#pragma once

#include <any>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace headrace {

// A thread may read values while another sets them: a reader finds the old value or the new one. A value that was
// replaced or erased lives as long as the op, because a reader may still use it.
class OpValues {
 public:
  OpValues() = default;
  OpValues(const OpValues&) = delete;
  OpValues& operator=(const OpValues&) = delete;

  // Returns the value in a slot; null where there is none.
  const std::any* find(size_t slot) const {
    const auto* block = blocks_[block_of(slot)].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : block[offset_of(slot)].load(std::memory_order_acquire);
  }
  // Puts a value into a slot. One without content erases what is there.
  void set(size_t slot, std::any value);

 private:
  using Slot = std::atomic<const std::any*>;
  // A block has twice as many slots as the one before it, and never moves.
  static constexpr size_t kFirstBlock = 32;
  static constexpr size_t kBlocks = 24;  // for more keys than fit into memory
  static size_t block_of(size_t slot) { return static_cast<size_t>(std::bit_width(slot / kFirstBlock + 1)) - 1; }
  static size_t offset_of(size_t slot) { return slot + kFirstBlock - (kFirstBlock << block_of(slot)); }

  std::array<std::atomic<Slot*>, kBlocks> blocks_ = {};
  std::mutex mutex_;  // guards the members below, which only set() uses
  std::vector<std::unique_ptr<Slot[]>> owned_blocks_;
  std::vector<std::unique_ptr<const std::any>> owned_values_;
};

}  // namespace headrace
