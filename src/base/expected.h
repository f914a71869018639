// Expected<T>: a value, or the reason for a normal no. For outcomes that are not errors.
#pragma once

#include <headrace/reason.h>

#include <string>
#include <utility>
#include <variant>

#include "base/error.h"

namespace headrace {

// Why something was not done: a code from the one list, and a sentence.
struct Refusal {
  hr_reason code;
  std::string message;
};

// Throws the refusal as an error: a MissingError where something is missing, else a UserError.
[[noreturn]] void throw_refusal(const Refusal& refusal);

template <typename T>
class Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() { return check(), std::get<0>(state_); }
  const T& value() const { return check(), std::get<0>(state_); }
  const Refusal& refusal() const { return std::get<1>(state_); }
  // Returns the value, or throws the refusal as an error.
  T value_or_throw() && { return throw_if_refused(), std::move(std::get<0>(state_)); }
  const T& value_or_throw() const& { return throw_if_refused(), std::get<0>(state_); }

 private:
  void throw_if_refused() const {
    if (!has_value()) throw_refusal(refusal());
  }
  void check() const {
    if (!has_value()) throw InternalError("value() of an Expected that holds a refusal: " + refusal().message);
  }
  std::variant<T, Refusal> state_;
};

}  // namespace headrace
