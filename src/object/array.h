// Array<T>: a sequence of values as an object, copied on write. A null Array is an empty one: every Array can be read.
#pragma once

#include <initializer_list>
#include <iterator>

#include "object/reflect.h"

namespace headrace {

struct ArrayObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Array";
  static constexpr int32_t static_type_index = type_index::kArray;
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  std::vector<Value> items;
};

template <typename T>
class Array {
 public:
  using value_type = T;
  Array() = default;
  Array(std::initializer_list<T> items) : Array(items.begin(), items.end()) {}
  explicit Array(const std::vector<T>& items) : Array(items.begin(), items.end()) {}
  template <std::input_iterator It>
  Array(It begin, It end) {
    for (; begin != end; ++begin) push_back(T(*begin));
  }
  // Converts an Array<Var> to an Array<Expr>.
  template <typename U>
    requires(std::convertible_to<U, T> && !std::same_as<U, T> &&
             (std::same_as<T, Value> || !(std::is_arithmetic_v<U> || std::is_arithmetic_v<T>)))
  Array(const Array<U>& other) : object_(other.object()) {}
  explicit Array(Ref<ArrayObj> object) : object_(std::move(object)) {}

  size_t size() const { return object_ ? object_->items.size() : 0; }
  bool empty() const { return size() == 0; }
  T operator[](size_t index) const { return ValueTraits<T>::from(object_->items[index].raw()); }
  T at(size_t index) const {
    if (index >= size()) throw_user_error("index {} is out of range for an Array of {} items", index, size());
    return (*this)[index];
  }
  T front() const { return at(0); }
  T back() const { return at(size() - 1); }

  void push_back(T item) { mutable_items().emplace_back(std::move(item)); }
  void set(size_t index, T item) {
    if (index >= size()) throw_user_error("index {} is out of range for an Array of {} items", index, size());
    mutable_items()[index] = Value(std::move(item));
  }
  void reserve(size_t n) { mutable_items().reserve(n); }
  void clear() { object_ = {}; }

  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = T;
    Iterator() = default;
    explicit Iterator(const Value* at) : at_(at) {}
    T operator*() const { return ValueTraits<T>::from(at_->raw()); }
    T operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return Iterator(at_++); }
    Iterator& operator--() { return --at_, *this; }
    Iterator operator--(int) { return Iterator(at_--); }
    Iterator& operator+=(difference_type n) { return at_ += n, *this; }
    Iterator& operator-=(difference_type n) { return at_ -= n, *this; }
    friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
    friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
    friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
    friend difference_type operator-(Iterator a, Iterator b) { return a.at_ - b.at_; }
    auto operator<=>(const Iterator&) const = default;

   private:
    const Value* at_ = nullptr;
  };
  Iterator begin() const { return Iterator(object_ ? object_->items.data() : nullptr); }
  Iterator end() const { return Iterator(object_ ? object_->items.data() + object_->items.size() : nullptr); }

  std::vector<T> to_vector() const { return std::vector<T>(begin(), end()); }
  const Ref<ArrayObj>& object() const { return object_; }
  // Returns whether both share one sequence object; equal items are not enough.
  bool same_as(const Array& other) const { return object_ == other.object_; }

 private:
  std::vector<Value>& mutable_items() {
    if (!object_) {
      object_ = make_object<ArrayObj>();
    } else if (!object_->is_unique()) {
      object_ = make_object<ArrayObj>(*object_);
    }
    return object_->items;
  }
  Ref<ArrayObj> object_;
};

template <typename T>
struct ValueTraits<Array<T>> {
  static Value to(const Array<T>& array) { return Value(array.object() ? array.object() : make_object<ArrayObj>()); }
  static bool matches(const RawValue& raw) {
    if (raw.type_index == type_index::kNone) return true;
    if (raw.type_index != type_index::kArray) return false;
    for (const Value& item : static_cast<const ArrayObj*>(raw.v.v_object)->items) {
      if (!matches_item<T>(item.raw())) return false;
    }
    return true;
  }
  static Array<T> from(const RawValue& raw) {
    if (raw.type_index == type_index::kNone) return {};
    return Array<T>(Ref<ArrayObj>(static_cast<ArrayObj*>(raw.v.v_object)));
  }
  static std::string name() { return fmt::format("Array[{}]", ValueTraits<T>::name()); }
};

// Lets a std::vector<Value> in C++ stand for an Array in values.
template <>
struct ValueTraits<std::vector<Value>> {
  static Value to(const std::vector<Value>& items) {
    Ref<ArrayObj> array = make_object<ArrayObj>();
    array->items = items;
    return Value(std::move(array));
  }
  static bool matches(const RawValue& raw) { return ValueTraits<Array<Value>>::matches(raw); }
  static std::vector<Value> from(const RawValue& raw) { return ValueTraits<Array<Value>>::from(raw).to_vector(); }
  static std::string name() { return "Array"; }
};

}  // namespace headrace
