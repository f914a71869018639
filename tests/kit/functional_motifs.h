// Pieces of random programs with data types, closures, recursion and references.
#pragma once

#include "kit/random.h"
#include "relay/expr.h"

namespace headrace::kit {

// Returns the data types and functions that the pieces use.
IRModule functional_prelude();

// `value` is of the type of `a`; it holds inside the lets, which come in this order.
struct FunctionalMotif {
  std::vector<std::pair<relay::Var, Expr>> lets;
  Expr value;
};

// Makes a motif over `a`, a typed tensor of float32, which decides by `condition`, a bool scalar. Its variables have
// names that end in `serial`. Values stay as moderate as those of `a`.
FunctionalMotif make_functional_motif(Random& random, const IRModule& prelude, const Expr& a, const Expr& condition,
                                      size_t serial);

}  // namespace headrace::kit
