// Reads attributes that texts written by TVM have and the ops here do not. For the parser of relay/text/ alone.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// Removes from `fields` the old attributes that change nothing: those that have TVM's default value, or that repeat an
// operand. The pad_value of nn.pad becomes an operand. A `full` without a dtype, or with the dtype "void", is given
// that of its fill value if it is known. UserError for an old attribute that would change the result.
void take_old_attrs(const OpNode& op, Array<Expr>& args, std::vector<std::pair<std::string, Value>>& fields);

}  // namespace headrace::relay
