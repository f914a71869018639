// Attributes that old text writes and the ops here do not have. Inner header of relay.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Removes old attributes from `fields` that say nothing: those at the value that TVM gives them by default, or that
// repeat an operand. The pad_value of nn.pad becomes its operand. `full` takes the dtype of its value where the text
// gives none, or "void", and the dtype is known. UserError for an old attribute that has a meaning.
void take_old_attrs(const OpNode& op, Array<Expr>& args, std::vector<std::pair<std::string, Value>>& fields);

}  // namespace headrace::relay
