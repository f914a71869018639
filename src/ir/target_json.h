// The JSON form of a target: one object, {"kind": "llvm", "mcpu": "znver4", "host": {"kind": "llvm"}}.
#pragma once

#include "object/array.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace {

// Parses a target's JSON form into the map that make_target_from_config takes: strings, integers, booleans, None for
// null, lists of strings, objects. UserError: text that is not a JSON object, a duplicate key, any other value, or
// objects nested deeper than a target has them.
Map<std::string, Value> parse_target_json(std::string_view text);

}  // namespace headrace
