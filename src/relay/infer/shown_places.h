// Type errors of a program that was read from a text, with the line where they are.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Returns the error with the line of its place and a caret below, where the place is in a text of the module:
//
//   nn.dense: weight must have 2 dimensions, got Tensor[(3), float32]
//     at: nn.dense
//     in: from_string:3:8
//       %0 = nn.dense(%x, %w);
//            ^^^^^^^^^^^^^^^^
//
// Returns the error itself otherwise. `about` is the node with the error: when its span begins at the place, the whole
// span is marked. Without it (null) one word is marked.
UserError with_shown_place(const UserError& error, const Span& about, const IRModule& module);

}  // namespace headrace::relay
