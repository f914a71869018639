// Short texts of values, for messages and Python. Not a format: nothing parses them.
#pragma once

#include "object/value.h"

namespace headrace {

struct ReprLimits {
  int depth = 3;   // nodes within nodes; "..." below
  int items = 8;   // items shown of an array or a map
  int size = 400;  // characters, about
};

// Returns a text such as `relay.Var(name_hint="x", type=...)`; ignored and transient fields are left out.
std::string repr(const Value& value, ReprLimits limits = {});

}  // namespace headrace
