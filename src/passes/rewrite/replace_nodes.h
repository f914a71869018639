// Putting expressions in place of nodes of a graph, several at once.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// `root` with each node that is a key of `replacements` replaced. A replacement is made of new nodes and of nodes of
// the original graph, in which nodes are replaced in turn; it must not lead back to its own key. `root` itself when
// nothing changed. Linear; no stack.
Expr replace_nodes(const Expr& root, const std::unordered_map<const Object*, Expr>& replacements);

}  // namespace headrace::passes
