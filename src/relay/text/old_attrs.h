// Attributes that old text writes and the ops here do not have. Inner header of relay.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Takes those of the op out of `fields` that say nothing: at the value that TVM has when nobody asks for anything, or
// repeating an operand. nn.pad's pad_value becomes its operand; `full` takes the dtype of its value where the text
// gives none, or "void", and the value's is known. UserError for one that says something.
void take_old_attrs(const OpNode& op, Array<Expr>& args, std::vector<std::pair<std::string, Value>>& fields);

}  // namespace headrace::relay
