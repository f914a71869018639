// Value: one value of any kind that crosses between C++, Python and compiled code: nothing, int, bool, float, pointer,
// string, dtype, device, tensor, object. Bit-identical to RawValue; owns its object.
#pragma once

#include <optional>
#include <string>

#include "object/object.h"

namespace headrace {

template <typename T>
struct ValueTraits;  // to(const T&) -> Value; matches(const RawValue&); from(const RawValue&) -> T; name()

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}
  Value(const Value& other) : raw_(other.raw_) { retain(); }
  Value(Value&& other) noexcept : raw_(std::exchange(other.raw_, RawValue{})) {}
  template <typename T>
    requires(!std::same_as<std::remove_cvref_t<T>, Value> && requires { ValueTraits<std::remove_cvref_t<T>>::name(); })
  Value(T&& value) : Value(ValueTraits<std::remove_cvref_t<T>>::to(std::forward<T>(value))) {}
  Value(const char* text);
  ~Value() { drop(); }
  Value& operator=(Value other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }

  // Takes ownership of the value in `raw`: one reference when it is an object.
  static Value adopt(RawValue raw) {
    Value value;
    value.raw_ = raw;
    return value;
  }
  // Copies a value: borrowed strings and tensors in `raw` become owned ones where possible.
  static Value own(const RawValue& raw);

  const RawValue& raw() const { return raw_; }
  RawValue release() { return std::exchange(raw_, RawValue{}); }
  int32_t type_index() const { return raw_.type_index; }
  bool is_none() const { return raw_.type_index == type_index::kNone; }
  bool is_object() const { return raw_.type_index >= type_index::kStaticObjectBegin; }
  Object* object() const { return is_object() ? raw_.v.v_object : nullptr; }

  template <typename T>
  bool is() const {
    return ValueTraits<T>::matches(raw_);
  }
  // Returns the value as a T; UserError naming both kinds when it is none.
  template <typename T>
  T as() const;
  // Returns the node, or null when the value is no such node.
  template <typename T>
  const T* as_node() const {
    return is_object() && raw_.v.v_object->is_instance<T>() ? static_cast<const T*>(raw_.v.v_object) : nullptr;
  }

 private:
  void retain() {
    if (is_object()) raw_.v.v_object->inc_strong();
  }
  void drop() {
    if (is_object()) raw_.v.v_object->dec_strong();
  }
  RawValue raw_;
};
static_assert(sizeof(Value) == sizeof(RawValue));

// Says whether None converts to a null reference of type T that a reader would have to test for. Items of an Array and
// arguments of a function are never null unless their type is std::optional or Value.
template <typename T>
inline constexpr bool none_is_null = false;
template <typename T>
inline constexpr bool none_is_null<Ref<T>> = true;

// Returns whether `raw` converts to a T that is not null.
template <typename T>
bool matches_item(const RawValue& raw) {
  return !(none_is_null<T> && raw.type_index == type_index::kNone) && ValueTraits<T>::matches(raw);
}

// Returns the name of a value's kind for messages: "int", "str", "relay.Var".
std::string kind_name(const RawValue& value);
// Returns a message such as "expected int of 8 bits, got int 300".
std::string kind_mismatch(const std::string& expected, const RawValue& got);
[[noreturn]] void throw_kind_mismatch(const std::string& expected, const RawValue& got);

template <typename T>
T value_to(const RawValue& raw) {
  if (!ValueTraits<T>::matches(raw)) throw_kind_mismatch(ValueTraits<T>::name(), raw);
  return ValueTraits<T>::from(raw);
}
template <typename T>
T Value::as() const {
  return value_to<T>(raw_);
}

template <>
struct ValueTraits<Value> {
  static Value to(const Value& value) { return value; }
  static bool matches(const RawValue&) { return true; }
  static Value from(const RawValue& raw) { return Value::own(raw); }
  static std::string name() { return "any value"; }
};

template <>
struct ValueTraits<bool> {
  static Value to(bool value) {
    RawValue raw;
    raw.type_index = type_index::kBool;
    raw.v.v_int = value ? 1 : 0;
    return Value::adopt(raw);
  }
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kBool || raw.type_index == type_index::kInt;
  }
  static bool from(const RawValue& raw) { return raw.v.v_int != 0; }
  static std::string name() { return "bool"; }
};

template <typename T>
  requires(std::integral<T> && !std::same_as<T, bool>)
struct ValueTraits<T> {
  static Value to(T value) {
    RawValue raw;
    raw.type_index = type_index::kInt;
    raw.v.v_int = static_cast<int64_t>(value);
    return Value::adopt(raw);
  }
  static bool matches(const RawValue& raw) {
    return (raw.type_index == type_index::kInt || raw.type_index == type_index::kBool) &&
           (sizeof(T) == 8 || static_cast<int64_t>(static_cast<T>(raw.v.v_int)) == raw.v.v_int);
  }
  static T from(const RawValue& raw) { return static_cast<T>(raw.v.v_int); }
  static std::string name() { return sizeof(T) == 8 ? "int" : fmt::format("int of {} bits", sizeof(T) * 8); }
};

// Requires `constexpr E greatest(E)`, which gives an enum's last enumerator. An enum that is a field of a node declares
// it; its enumerators have no gaps.
template <typename T>
concept HasGreatest = requires { greatest(T{}); };

template <typename T>
  requires std::is_enum_v<T>
struct ValueTraits<T> {
  using Int = ValueTraits<std::underlying_type_t<T>>;
  static Value to(T value) { return Int::to(static_cast<std::underlying_type_t<T>>(value)); }
  static bool matches(const RawValue& raw) {
    static_assert(HasGreatest<T>, "say `constexpr E greatest(E)` beside the enum: values from outside are held to it");
    return Int::matches(raw) && raw.v.v_int >= 0 && raw.v.v_int <= static_cast<int64_t>(greatest(T{}));
  }
  static T from(const RawValue& raw) { return static_cast<T>(Int::from(raw)); }
  static std::string name() { return "enum"; }
};

template <typename T>
  requires std::floating_point<T>
struct ValueTraits<T> {
  static Value to(T value) {
    RawValue raw;
    raw.type_index = type_index::kFloat;
    raw.v.v_float = static_cast<double>(value);
    return Value::adopt(raw);
  }
  static bool matches(const RawValue& raw) {
    return raw.type_index >= type_index::kInt && raw.type_index <= type_index::kFloat;
  }
  static T from(const RawValue& raw) {
    return static_cast<T>(raw.type_index == type_index::kFloat ? raw.v.v_float : static_cast<double>(raw.v.v_int));
  }
  static std::string name() { return "float"; }
};

template <>
struct ValueTraits<void*> {
  static Value to(void* value) {
    RawValue raw;
    raw.type_index = value == nullptr ? type_index::kNone : type_index::kPtr;
    raw.v.v_ptr = value;
    return Value::adopt(raw);
  }
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kPtr || raw.type_index == type_index::kNone;
  }
  static void* from(const RawValue& raw) { return raw.type_index == type_index::kNone ? nullptr : raw.v.v_ptr; }
  static std::string name() { return "pointer"; }
};

template <>
struct ValueTraits<std::string> {
  static Value to(std::string value);
  static bool matches(const RawValue& raw);
  static std::string from(const RawValue& raw);
  static std::string name() { return "str"; }
};

// Returns the characters of any kind of string value (borrowed from it); do not call for other kinds.
std::string_view string_of(const RawValue& raw);

template <typename T>
struct ValueTraits<std::optional<T>> {
  static Value to(const std::optional<T>& value) { return value ? Value(*value) : Value(); }
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kNone || ValueTraits<T>::matches(raw);
  }
  static std::optional<T> from(const RawValue& raw) {
    if (raw.type_index == type_index::kNone) return std::nullopt;
    return ValueTraits<T>::from(raw);
  }
  static std::string name() { return "None or " + ValueTraits<T>::name(); }
};

template <typename T>
struct ValueTraits<Ref<T>> {
  static Value to(Ref<T> ref) {
    RawValue raw;
    if (Object* object = ref.release(); object != nullptr) {
      raw.type_index = object->type_index();
      raw.v.v_object = object;
    }
    return Value::adopt(raw);
  }
  // Accepts a null reference; callers that need a node check for it.
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kNone ||
           (raw.type_index >= type_index::kStaticObjectBegin && raw.v.v_object->is_instance<T>());
  }
  static Ref<T> from(const RawValue& raw) {
    return raw.type_index == type_index::kNone ? Ref<T>() : Ref<T>(static_cast<T*>(raw.v.v_object));
  }
  static std::string name() { return std::string(T::type_key); }
};

}  // namespace headrace
