// Names of types that get out of the function that binds them.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

struct Escape {
  Expr at;
  Type type;         // of `at`, which mentions the name
  std::string what;  // "the type parameter A", "the dimension n"
};

// Type parameters and symbols in the types of the nodes under `roots` that no function around the node binds: by its
// type parameters, by the types of its parameters (not by a name that another function's annotations have). A function
// type binds its own. What the annotations of free variables mention is bound everywhere; where the roots are
// parts of a function (`is_part`), also the type parameters that nothing under them declares. Each name once, at the
// first node that has it. `type_of` gives null where there is nothing to check.
std::vector<Escape> find_escapes(const std::vector<Expr>& roots, bool is_part,
                                 const std::function<Type(const Expr&)>& type_of);

}  // namespace headrace::relay
