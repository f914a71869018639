// What destination passing and lowering rely on in a main that FuseOps has been through. Private to plan/.
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

// UserError at the place of the breach: relay text may hold groups, and marks that keep FuseOps away, of its own.
//   1. main is none of the functions that passes leave alone (relay/function_attrs.h), so that its ops are in groups;
//   2. a group's parameters and result are tensors or tuples of them;
//   3. a group is made of calls of ops, tuples, their items, constants of one element and its own parameters.
void check_fused(const relay::Function& main);

}  // namespace headrace::plan
