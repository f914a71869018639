// Relay's dyn ops take operands that are attributes of the ops here: `dyn.topk(%x, 3, axis=0)` is `topk(%x, k=3,
// axis=0)`. Inner header of relay.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Removes from `args` the operands of a call of `name`, such as "dyn.topk", that are attributes here, and returns those
// attributes; returns nothing for other names. UserError when such an operand is missing, is not constant, or has
// another dtype or size.
std::vector<std::pair<std::string, Value>> take_dyn_operands(std::string_view name, Array<Expr>& args);

}  // namespace headrace::relay
