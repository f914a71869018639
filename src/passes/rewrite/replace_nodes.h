// Putting expressions in place of nodes of a graph, several at once.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// Replaces each node of `root` that is a key of `replacements`; returns `root` itself when nothing changed. Nodes of
// the original graph inside a replacement are replaced in turn; a replacement must not lead back to its own key.
// Linear; no recursion.
Expr replace_nodes(const Expr& root, const std::unordered_map<const Object*, Expr>& replacements);

}  // namespace headrace::passes
