// Attributes of calls by name, whether the op is built in or a user registered it.
#pragma once

#include <optional>

#include "relay/expr.h"

namespace headrace::relay {

// Returns the value of an attribute of a call, defaults included; nothing where the call has no such attribute.
std::optional<Value> find_call_attr(const CallNode& call, const std::string& name);
// Returns the call's attributes with another value of one that it has. UserError when the attribute does not take it.
Attrs with_call_attr(const CallNode& call, const std::string& name, const Value& value);

}  // namespace headrace::relay
