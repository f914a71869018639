// Declares which values users may set on ops under a key (OpKey<Value>). A wrong value is reported where it is set
// instead of where it is read. An undeclared key takes any value.
#pragma once

#include <string>

#include "ir/expr.h"

namespace headrace {

// Declares a key. `wanted` describes its values in messages: "a function of (attrs, args, types)". None is accepted
// too.
void declare_op_attr(std::string key, std::string wanted, bool (*accepts)(const RawValue&));

template <typename T>
void declare_op_attr(std::string key, std::string wanted) {
  declare_op_attr(std::move(key), std::move(wanted), &ValueTraits<T>::matches);
}

// Throws a UserError that names the op, the key, the expected kind and the value.
[[noreturn]] void throw_wrong_op_attr(const OpNode& op, std::string_view key, std::string_view wanted,
                                      const Value& value);

}  // namespace headrace
