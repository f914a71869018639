// What attributes that users set on ops (OpKey<Value>) must be, by key: a wrong value is told where it is set, not
// where it is read. A key that nobody declared takes any value.
#pragma once

#include <string>

#include "ir/expr.h"

namespace headrace {

// `wanted` says what the values of `key` are, for messages: "a function of (attrs, args, types)". None is taken too.
void declare_op_attr(std::string key, std::string wanted, bool (*accepts)(const RawValue&));

template <typename T>
void declare_op_attr(std::string key, std::string wanted) {
  declare_op_attr(std::move(key), std::move(wanted), &ValueTraits<T>::matches);
}

// UserError that names the op, the key, what is wanted and what came.
[[noreturn]] void throw_wrong_op_attr(const OpNode& op, std::string_view key, std::string_view wanted,
                                      const Value& value);

}  // namespace headrace
