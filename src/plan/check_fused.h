// Checks the form of `main` after FuseOps that destination passing and lowering rely on. Private to plan/.
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

// Throws a UserError at the place of the first breach. Relay text may contain groups of its own, and marks that keep
// FuseOps away.
//   1. main is not a function that passes leave alone (relay/function_attrs.h), so its ops are in groups;
//   2. a group's parameters and result are tensors or tuples of them;
//   3. a group consists of calls of ops, tuples, their items, constants of one element and its own parameters.
void check_fused(const relay::Function& main);

}  // namespace headrace::plan
