// ObjectMap<T>: values by object, for walks over large programs. It borrows its keys.
//
// Entries stand in one table with open addresses, so that an entry needs no memory of its own. Objects that are
// neighbours in memory are neighbours in the table, too: a program's nodes mostly lie in the order in which they were
// made, which is the order of the walks, so that a walk reads the table from one end to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace headrace {

class Object;

template <typename T>
class ObjectMap {
 public:
  // Returns the value of `key`; null when it has none. The pointer holds until the next insertion.
  const T* find(const Object* key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(key)];
    return slot.key == nullptr ? nullptr : &slot.value;
  }
  T* find(const Object* key) { return const_cast<T*>(std::as_const(*this).find(key)); }
  bool contains(const Object* key) const { return find(key) != nullptr; }

  // Inserts `value` unless `key`, which is not null, has one. Returns the value that it has then, and whether that is
  // the new one.
  std::pair<T*, bool> try_emplace(const Object* key, T value) {
    if (4 * size_ >= 3 * slots_.size()) grow();
    Slot& slot = slots_[place_of(key)];
    if (slot.key != nullptr) return {&slot.value, false};
    slot = {key, std::move(value)};
    ++size_;
    return {&slot.value, true};
  }

  size_t size() const { return size_; }

  // Makes room for `count` entries.
  void reserve(size_t count) {
    size_t slots = kFirstSlots;
    while (3 * slots < 4 * (count + 1)) slots *= 2;
    if (slots > slots_.size()) resize(slots);
  }

 private:
  static constexpr size_t kFirstSlots = 16;

  struct Slot {
    const Object* key = nullptr;
    T value{};
  };

  // Returns the place of the key, or the free one where it would be.
  size_t place_of(const Object* key) const {
    const size_t mask = slots_.size() - 1;
    size_t place = first_place(key) & mask;
    while (slots_[place].key != nullptr && slots_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  // Objects of one page keep their order, by lines of 64 bytes, which no two nodes share; the pages are spread by
  // Fibonacci hashing.
  static size_t first_place(const Object* key) {
    const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(key));
    return static_cast<size_t>(((address >> 12) * 0x9E3779B97F4A7C15u >> 32) + (address >> 6 & 63));
  }

  void grow() { resize(slots_.empty() ? kFirstSlots : 2 * slots_.size()); }

  void resize(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key != nullptr) slots_[place_of(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two of them; at most three quarters are taken
  size_t size_ = 0;
};

}  // namespace headrace
