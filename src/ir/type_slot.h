// TypeSlot: the type of an expression, which type inference sets in place and once. Threads that infer one program may
// set and read it at the same time: the first to set it wins. Reading takes no lock.
#pragma once

#include <string>
#include <utility>

#include "ir/type.h"

namespace headrace {

class TypeSlot {
 public:
  TypeSlot() = default;
  explicit TypeSlot(Type type) : type_(std::move(type)) {}
  TypeSlot(const TypeSlot&) = delete;
  TypeSlot& operator=(TypeSlot&&) = default;  // only while no other thread has access

  bool is_set() const;
  // Returns the type; it does not change once is_set().
  const Type& get() const { return type_; }
  // Sets `type` unless there is one. Gives the one that is there then.
  const Type& offer(Type type);

 private:
  Type type_;
};

// Lets reflection see a TypeSlot field as a Type; null while it is not set.
template <>
struct ValueTraits<TypeSlot> {
  static Value to(const TypeSlot& slot) { return ValueTraits<Type>::to(slot.is_set() ? slot.get() : Type()); }
  static bool matches(const RawValue& raw) { return ValueTraits<Type>::matches(raw); }
  static TypeSlot from(const RawValue& raw) { return TypeSlot(ValueTraits<Type>::from(raw)); }
  static std::string name() { return ValueTraits<Type>::name(); }
};

}  // namespace headrace
