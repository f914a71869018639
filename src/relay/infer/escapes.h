// Names of types that get out of the function that binds them.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

struct Escape {
  Expr at;
  Type type;         // type of `at`, which mentions the name
  std::string what;  // "the type parameter A", "the dimension n"
};

// Finds type parameters and symbols, in the types of the nodes under `roots`, that no function around the node binds by
// its type parameters or by the types of its parameters. (A name in another function's annotations does not bind it.) A
// function type binds its own. Names in the annotations of free variables count as bound everywhere. Where the roots
// are parts of a function (`is_part`), so do type parameters that nothing under them declares. Each name is reported
// once, at the first node that has it. `type_of` returns null for nodes that need no check.
std::vector<Escape> find_escapes(const std::vector<Expr>& roots, bool is_part,
                                 const std::function<Type(const Expr&)>& type_of);

}  // namespace headrace::relay
