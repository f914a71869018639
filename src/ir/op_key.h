// Keys of op attributes. A key is a name that is resolved once to a slot, so that reading an attribute is an index into
// the op's slots. Keys live in the room that reads them: relay/op_keys.h, ops/op_keys.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>

namespace headrace {

// Returns the slot of the keys of that name, the same for the life of the process. Safe from any thread.
size_t op_key_slot(std::string_view name);
// Returns the slot of the keys of that name; nothing when no key of the name was asked for its slot yet.
std::optional<size_t> find_op_key_slot(std::string_view name);

// The key of an attribute of type T. Two keys of one name are one key; `name` must outlive the key.
template <typename T>
struct OpKey {
  constexpr OpKey(std::string_view key_name) : name(key_name) {}

  // Resolves the name at its first call.
  size_t slot() const {
    const size_t known = slot_.load(std::memory_order_relaxed);
    if (known != kUnresolved) return known;
    const size_t found = op_key_slot(name);
    slot_.store(found, std::memory_order_relaxed);
    return found;
  }

  std::string_view name;

 private:
  static constexpr size_t kUnresolved = ~size_t{0};
  mutable std::atomic<size_t> slot_{kUnresolved};
};

}  // namespace headrace
