// Whether an expression has the attributes that a pattern asks for.
#pragma once

#include "relay/patterns/pattern.h"

namespace headrace::relay {

// Returns whether an op, a call or a function has all of `attrs`, with equal values; false for other expressions. A
// number equals one of its value, whether it is an int, a bool, a float or a constant of the IR; a dtype equals its
// name; lists, tuples and shapes are equal item by item; other values structurally.
bool has_attrs(const Expr& expr, const Map<std::string, Value>& attrs);

// Reads an attribute of an op by the name that users know, such as "TOpPattern"; None where the op has none. The rooms
// that define such names are above this one: driver/register_all.cc installs the reader. Without one, an op has the
// attributes that were set as a Value.
using OpAttrReader = Value (*)(const Op& op, const std::string& key);
void set_op_attr_reader(OpAttrReader reader);

}  // namespace headrace::relay
