// Ops that are made whole before anybody sees them: how ops are registered while other threads compile.
#pragma once

#include "ir/expr.h"

namespace headrace {

// Makes an op that get_op() does not know yet.
Op make_op(std::string name);
// Makes `op` known under its name. UserError when the name is taken, unless `replace` is set: programs that were made
// before keep the op that they were made with.
void publish_op(const Op& op, bool replace);

}  // namespace headrace
