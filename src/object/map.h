// Map<K, V>: a mapping that keeps the order of insertion; copy on write. Keys are equal by content for numbers and
// strings, by identity for objects.
#pragma once

#include <initializer_list>
#include <unordered_map>

#include "object/reflect.h"
#include "object/repr.h"

namespace headrace {

// Compare and hash map keys.
bool key_equal(const RawValue& a, const RawValue& b);
size_t key_hash(const RawValue& key);

struct MapObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Map";
  static constexpr int32_t static_type_index = type_index::kMap;
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;

  std::vector<std::pair<Value, Value>> items;
  std::unordered_multimap<size_t, size_t> index;  // hash of the key -> position in items

  const std::pair<Value, Value>* find_item(const RawValue& key) const;  // null when there is none
  const Value* find(const RawValue& key) const;
  void set(Value key, Value value);
  bool erase(const RawValue& key);
};

template <typename K, typename V>
class Map {
 public:
  Map() = default;
  Map(std::initializer_list<std::pair<K, V>> items) {
    for (const auto& [key, value] : items) set(key, value);
  }
  explicit Map(Ref<MapObj> object) : object_(std::move(object)) {}

  size_t size() const { return object_ ? object_->items.size() : 0; }
  bool empty() const { return size() == 0; }
  bool contains(const K& key) const { return find_value(key) != nullptr; }
  std::optional<V> get(const K& key) const {
    const Value* value = find_value(key);
    if (value == nullptr) return std::nullopt;
    return ValueTraits<V>::from(value->raw());
  }
  V at(const K& key) const {
    const Value* value = find_value(key);
    if (value == nullptr) throw_user_error("the Map has no key {}", repr(Value(key)));
    return ValueTraits<V>::from(value->raw());
  }
  void set(K key, V value) { mutable_map().set(Value(std::move(key)), Value(std::move(value))); }
  bool erase(const K& key) { return contains(key) && mutable_map().erase(Value(key).raw()); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::pair<K, V>;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;
    explicit Iterator(const std::pair<Value, Value>* at) : at_(at) {}
    value_type operator*() const {
      return {ValueTraits<K>::from(at_->first.raw()), ValueTraits<V>::from(at_->second.raw())};
    }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(const Iterator&) const = default;

   private:
    const std::pair<Value, Value>* at_;
  };
  Iterator begin() const { return Iterator(object_ ? object_->items.data() : nullptr); }
  Iterator end() const { return Iterator(object_ ? object_->items.data() + object_->items.size() : nullptr); }
  const Ref<MapObj>& object() const { return object_; }
  bool same_as(const Map& other) const { return object_ == other.object_; }

 private:
  const Value* find_value(const K& key) const { return object_ ? object_->find(Value(key).raw()) : nullptr; }
  MapObj& mutable_map() {
    if (!object_) {
      object_ = make_object<MapObj>();
    } else if (!object_->is_unique()) {
      object_ = make_object<MapObj>(*object_);
    }
    return *object_;
  }
  Ref<MapObj> object_;
};

template <typename K, typename V>
struct ValueTraits<Map<K, V>> {
  static Value to(const Map<K, V>& map) { return Value(map.object() ? map.object() : make_object<MapObj>()); }
  static bool matches(const RawValue& raw) {
    if (raw.type_index == type_index::kNone) return true;
    if (raw.type_index != type_index::kMap) return false;
    for (const auto& [key, value] : static_cast<const MapObj*>(raw.v.v_object)->items) {
      if (!matches_item<K>(key.raw()) || !matches_item<V>(value.raw())) return false;
    }
    return true;
  }
  static Map<K, V> from(const RawValue& raw) {
    if (raw.type_index == type_index::kNone) return {};
    return Map<K, V>(Ref<MapObj>(static_cast<MapObj*>(raw.v.v_object)));
  }
  static std::string name() { return fmt::format("Map[{}, {}]", ValueTraits<K>::name(), ValueTraits<V>::name()); }
};

}  // namespace headrace
