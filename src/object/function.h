// PackedFunc: a type-erased function that C++, Python and compiled code call alike. TypedPackedFunc<R(Args...)>: the
// same with a C++ signature. Both follow the one calling convention (SafeCall).
#pragma once

#include <array>
#include <functional>
#include <span>
#include <tuple>

#include "object/array.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "object/string.h"

namespace headrace {

struct ErrorObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Error";
  static constexpr int32_t static_type_index = type_index::kError;
  static constexpr bool is_final = true;
  std::string kind;  // "UserError", "InternalError", or a Python exception's name
  std::string message;
  std::string op;  // where: see ErrorPlace
  std::string place;
  std::string traceback;  // C++ functions of an InternalError (base/frames.h)
  ObjectRef payload;      // lets a language raise its own exception again
};

// The arguments of a call: a borrowed view.
class Args {
 public:
  Args(const RawValue* values, int32_t count) : values_(values), count_(count) {}
  int32_t size() const { return count_; }
  const RawValue& operator[](int32_t index) const { return values_[index]; }
  // Returns argument `index` as a T; UserError that names the argument when it is missing or of another kind.
  template <typename T>
  T at(int32_t index) const {
    if (index >= count_) throw_user_error("argument {} is missing: got {} arguments", index, count_);
    if (!matches_item<T>(values_[index]))
      throw_user_error("argument {}: {}", index, kind_mismatch(ValueTraits<T>::name(), values_[index]));
    return ValueTraits<T>::from(values_[index]);
  }

 private:
  const RawValue* values_;
  int32_t count_;
};

struct FunctionObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Function";
  static constexpr int32_t static_type_index = type_index::kFunction;
  static constexpr bool is_final = true;
  SafeCall safe_call = nullptr;  // first after the header: other libraries call through it
  void* reserved = nullptr;
  std::function<Value(Args)> body;
};

// Stores the exception being handled as the thread's error; returns -1. For the catch-all at a C border.
int store_current_exception() noexcept;
// Throws the thread's stored error as a C++ exception of its kind.
[[noreturn]] void throw_stored_error();
// Returns and clears the thread's stored error; null when there is none.
Ref<ErrorObj> take_stored_error();
void store_error(Ref<ErrorObj> error);

namespace detail {
// Implements the SafeCall of functions with a C++ body: it returns a code and lets no exception out.
int call_body(void* self, const RawValue* args, int32_t n, RawValue* result) noexcept;
}  // namespace detail

class PackedFunc {
 public:
  PackedFunc() = default;
  explicit PackedFunc(std::function<Value(Args)> body);
  explicit PackedFunc(Ref<FunctionObj> object) : object_(std::move(object)) {}
  explicit operator bool() const { return object_.defined(); }
  const Ref<FunctionObj>& object() const { return object_; }

  template <typename... A>
  Value operator()(A&&... args) const {
    const std::array<Value, sizeof...(A)> values{Value(std::forward<A>(args))...};
    return call(values);
  }
  Value call(std::span<const Value> args) const {
    static_assert(sizeof(Value) == sizeof(RawValue));
    return call(Args(reinterpret_cast<const RawValue*>(args.data()), static_cast<int32_t>(args.size())));
  }
  // Calls the function. A function of this library keeps its C++ exception and backtrace; others go through the C
  // convention.
  Value call(Args args) const {
    if (object_ && object_->safe_call == &detail::call_body) return object_->body(args);
    return call_by_convention(args);
  }

 private:
  // Throws UserError for a null function.
  Value call_by_convention(Args args) const;

  Ref<FunctionObj> object_;
};

template <>
inline constexpr bool none_is_null<PackedFunc> = true;

template <>
struct ValueTraits<PackedFunc> {
  static Value to(const PackedFunc& function) { return Value(function.object()); }
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kFunction || raw.type_index == type_index::kNone;
  }
  static PackedFunc from(const RawValue& raw) { return PackedFunc(ValueTraits<Ref<FunctionObj>>::from(raw)); }
  static std::string name() { return "function"; }
};

template <typename Signature>
class TypedPackedFunc;

template <typename R, typename... A>
class TypedPackedFunc<R(A...)> {
 public:
  TypedPackedFunc() = default;
  explicit TypedPackedFunc(PackedFunc packed) : packed_(std::move(packed)) {}
  template <typename F>
    requires std::is_invocable_r_v<R, F, A...>
  explicit TypedPackedFunc(F body)
      : packed_([body = std::move(body)](Args args) { return invoke(body, args, std::index_sequence_for<A...>()); }) {}

  R operator()(A... args) const {
    Value result = packed_(std::move(args)...);
    if constexpr (!std::is_void_v<R>) return result.template as<R>();
  }
  const PackedFunc& packed() const { return packed_; }

 private:
  template <typename F, size_t... I>
  static Value invoke(const F& body, Args args, std::index_sequence<I...>) {
    if (args.size() != sizeof...(A)) throw_user_error("expected {} arguments, got {}", sizeof...(A), args.size());
    if constexpr (std::is_void_v<R>) {
      body(args.at<std::remove_cvref_t<A>>(static_cast<int32_t>(I))...);
      return Value();
    } else {
      return Value(body(args.at<std::remove_cvref_t<A>>(static_cast<int32_t>(I))...));
    }
  }
  PackedFunc packed_;
};

namespace detail {
template <typename F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...) const> {
  using type = R(std::remove_cvref_t<A>...);
};
template <typename R, typename... A>
struct SignatureOf<R (*)(A...)> {
  using type = R(std::remove_cvref_t<A>...);
};
}  // namespace detail

// Makes a PackedFunc of a lambda or a function pointer: make_packed([](int64_t a, int64_t b) { return a + b; }).
template <typename F>
PackedFunc make_packed(F body) {
  return TypedPackedFunc<typename detail::SignatureOf<F>::type>(std::move(body)).packed();
}

// Registers a function in the process-wide table, whose entries are never removed. UserError when `name` is taken,
// unless `override` is set.
void register_global(const std::string& name, PackedFunc function, bool override = false);
// Returns the global function, or a null function when there is none of that name.
PackedFunc find_global(std::string_view name);
// Returns the global function. UserError that names the function when there is none.
PackedFunc get_global(std::string_view name);
std::vector<std::string> global_names();

}  // namespace headrace
