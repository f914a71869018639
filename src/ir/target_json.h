// The JSON form of a target: one object, {"kind": "llvm", "mcpu": "znver4", "host": {"kind": "llvm"}}.
#pragma once

#include "object/array.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace {

// As make_target_from_config takes it: texts, integers, booleans, None for null, lists of texts, objects. UserError:
// text that is no JSON object, a key that is there twice, any other value, objects within each other past what a target
// has.
Map<std::string, Value> parse_target_json(std::string_view text);

}  // namespace headrace
