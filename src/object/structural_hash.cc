#include "object/structural_hash.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "object/array.h"
#include "object/hash.h"
#include "object/map.h"
#include "object/string.h"
#include "object/structural_fields.h"

namespace headrace {

bool detail::is_leaf(const RawValue& raw) {
  if (raw.type_index < type_index::kStaticObjectBegin || is_string(raw) || is_bytes(raw)) return true;
  return raw.v.v_object->type_info().content.equal != nullptr;
}

uint64_t detail::leaf_hash(const RawValue& raw) {
  if (is_string(raw)) return hash_text(string_of(raw), type_index::kStr);
  if (is_bytes(raw)) return hash_text(string_of(raw), type_index::kBytes);
  if (raw.type_index >= type_index::kStaticObjectBegin) {
    const TypeInfo& type = raw.v.v_object->type_info();
    return hash_combine(hash_text(type.key), type.content.hash(*raw.v.v_object));
  }
  const bool is_nan = raw.type_index == type_index::kFloat && std::isnan(raw.v.v_float);
  return hash_combine(static_cast<uint64_t>(raw.type_index),
                      is_nan ? 0x7ff8000000000000u : static_cast<uint64_t>(raw.v.v_int));
}

bool detail::leaf_equal(const RawValue& a, const RawValue& b) {
  if (is_string(a) || is_string(b)) return is_string(a) && is_string(b) && string_of(a) == string_of(b);
  if (is_bytes(a) || is_bytes(b)) return is_bytes(a) && is_bytes(b) && string_of(a) == string_of(b);
  if (a.type_index != b.type_index) return false;
  if (a.type_index >= type_index::kStaticObjectBegin) {
    return a.v.v_object == b.v.v_object || a.v.v_object->type_info().content.equal(*a.v.v_object, *b.v.v_object);
  }
  if (a.type_index == type_index::kFloat && std::isnan(a.v.v_float)) return std::isnan(b.v.v_float);
  return a.v.v_int == b.v.v_int;
}

namespace {

using detail::DefMode;

struct Known {
  Value node;  // kept alive: an address must not come back as another node's
  uint64_t hash;
};

// A node whose parts are being hashed.
struct HashFrame {
  Value node;
  DefMode mode;
  std::vector<std::pair<Value, DefMode>> parts;
  size_t next = 0;
  uint64_t hash = 0;
};

class Hasher {
 public:
  Hasher(StructuralOptions options, bool top) : options_(options), top_(top) {}

  uint64_t run(const Value& root, DefMode mode) {
    uint64_t result = 0;
    if (!enter(root, mode, result)) return result;
    while (true) {
      HashFrame& frame = stack_.back();
      if (frame.next < frame.parts.size()) {
        const auto [part, part_mode] = frame.parts[frame.next++];
        uint64_t hash = 0;
        if (!enter(part, part_mode, hash)) stack_.back().hash = hash_combine(stack_.back().hash, hash);
        continue;
      }
      result = leave();
      if (stack_.empty()) return result;
      stack_.back().hash = hash_combine(stack_.back().hash, result);
    }
  }

 private:
  // Hashes `value` at once into `hash` and returns false, or pushes its frame and returns true.
  bool enter(const Value& value, DefMode mode, uint64_t& hash) {
    if (detail::is_leaf(value.raw())) return hash = detail::leaf_hash(value.raw()), false;
    const Object* node = value.object();
    if (auto it = known_.find(node); it != known_.end()) return hash = it->second.hash, false;
    const TypeInfo& type = node->type_info();
    const StructuralKind kind = detail::kind_of(type);
    const bool by_identity = kind == StructuralKind::unique ||
                             (kind == StructuralKind::var && mode == DefMode::use && !options_.map_free_vars);
    if (by_identity) {
      hash = hash_combine(hash_text(type.key), reinterpret_cast<uintptr_t>(node));
      known_.emplace(node, Known{value, hash});
      return false;
    }
    stack_.push_back({value, mode, parts_of(value, type, mode), 0, hash_text(type.key)});
    return true;
  }

  uint64_t leave() {
    HashFrame frame = std::move(stack_.back());
    stack_.pop_back();
    uint64_t hash = hash_combine(frame.hash, frame.parts.size());
    const TypeInfo& type = frame.node.object()->type_info();
    if (detail::kind_of(type) == StructuralKind::var && !detail::is_bound_anew(type, frame.mode))
      hash = hash_combine(hash, ++variables_);
    known_.emplace(frame.node.object(), Known{frame.node, hash});
    return hash;
  }

  std::vector<std::pair<Value, DefMode>> parts_of(const Value& value, const TypeInfo& type, DefMode mode) {
    std::vector<std::pair<Value, DefMode>> parts;
    if (const auto* array = value.as_node<ArrayObj>(); array != nullptr) {
      for (const Value& item : array->items) parts.emplace_back(item, mode);
    } else if (const auto* map = value.as_node<MapObj>(); map != nullptr) {
      for (const size_t i : entry_order(*map, mode)) {
        parts.emplace_back(map->items[i].first, mode);
        parts.emplace_back(map->items[i].second, mode);
      }
    } else {
      detail::for_each_compared_field(type, [&](const FieldInfo& field) {
        parts.emplace_back(detail::compared_value(field, value.object()), detail::mode_of(field, type, mode));
      });
    }
    return parts;
  }

  // Orders entries by the hashes of their keys, so that the order of insertion does not count.
  std::vector<size_t> entry_order(const MapObj& map, DefMode mode) {
    std::vector<std::tuple<uint64_t, uint64_t, size_t>> order;
    for (size_t i = 0; i < map.items.size(); ++i) {
      const auto [hash, tie] = top_ ? place_of(map.items[i].first, mode) : std::pair<uint64_t, uint64_t>{};
      order.emplace_back(hash, tie, i);
    }
    std::sort(order.begin(), order.end());
    std::vector<size_t> result;
    for (const auto& [hash, tie, i] : order) result.push_back(i);
    return result;
  }

  std::pair<uint64_t, uint64_t> place_of(const Value& key, DefMode mode) {
    if (detail::is_leaf(key.raw())) return {detail::leaf_hash(key.raw()), 0};
    // Only the hash of the key alone is the same on both sides, because two graphs may share a node differently.
    const StructuralKind kind = detail::kind_of(key.object()->type_info());
    const bool corresponds = kind == StructuralKind::var || kind == StructuralKind::dag;
    if (auto it = known_.find(key.object()); corresponds && it != known_.end()) return {it->second.hash, 0};
    const bool mapped = options_.map_free_vars || mode != DefMode::use;
    return {detail::key_hash_alone(key, {.map_free_vars = true}), mapped ? 0 : detail::key_hash_alone(key, options_)};
  }

  StructuralOptions options_;
  bool top_;
  uint64_t variables_ = 0;  // the number of variables bound or mapped so far, which tells them apart
  std::unordered_map<const Object*, Known> known_;
  std::vector<HashFrame> stack_;
};

}  // namespace

uint64_t detail::key_hash_alone(const Value& key, StructuralOptions options) {
  return is_leaf(key.raw()) ? leaf_hash(key.raw()) : Hasher(options, false).run(key, DefMode::use);
}

uint64_t structural_hash(const Value& value, StructuralOptions options) {
  return Hasher(options, true).run(value, DefMode::use);
}

}  // namespace headrace
