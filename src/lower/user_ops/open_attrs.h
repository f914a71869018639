// Open attributes of ops: any key, any value, on any op. Two keys of Relay are what an op of a user says of itself:
// "TOpPattern" (an int, as relay.op.OpPattern) and "TOpIsStateful" (a bool).
#pragma once

#include "lower/user_ops/user_op.h"

namespace headrace::lower {

// Sets an attribute. UserError: a key of C++ whose value is not a Value, a value that the key does not take
// (ir/op_attrs.h), a pattern that does not exist, or one of Relay's two keys on a built-in op.
void set_open_attr(const Op& op, const std::string& key, const Value& value);
// Returns the attribute; None where there is none.
Value get_open_attr(const Op& op, const std::string& key);
// Removes an attribute that was set.
void reset_open_attr(const Op& op, const std::string& key);

}  // namespace headrace::lower
