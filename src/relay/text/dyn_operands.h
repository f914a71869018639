// Relay's dyn ops take as operands what the ops themselves have as attributes: `dyn.topk(%x, 3, axis=0)` is
// `topk(%x, k=3, axis=0)`. Inner header of relay.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Takes the operands of a call of `name`, such as "dyn.topk", that are attributes here away from `args` and gives these
// attributes; nothing for other names. UserError when one is missing or no constant, or a constant of another dtype or
// size.
std::vector<std::pair<std::string, Value>> take_dyn_operands(std::string_view name, Array<Expr>& args);

}  // namespace headrace::relay
