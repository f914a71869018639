// Composition: which expressions of a program the pieces of another one compute that was made of it.
//
//   tan(exp(%x))   and   fn (%a, Composite="x.exp_tan") { tan(exp(%a)) }(%x)
//     ->   one piece, whose parts are tan(exp(%x)) and exp(%x); the calls inside stand for these
//
// Rewrites that make pieces, break them up or infer types make new nodes. A call of the rewritten program is known by
// the expression of the other program for which it stands, and not by its place or kind, which others may share.
#pragma once

#include "object/object_map.h"
#include "relay/expr.h"

namespace headrace::partition {

// A piece of a program that a pattern matches.
struct Instance {
  Expr call;                   // calls the composite function; typed, with arguments of its own
  std::vector<Expr> inputs;    // the program's expressions that are its arguments
  Expr root;                   // the program's expression that it computes
  std::vector<Expr> parts;     // the program's expressions inside, the root first
  std::vector<Expr> inside{};  // the root, and the parts that only these use: where it is chosen, they are gone

  std::string name() const;
};

struct Composition {
  // The calls of composite functions in the composed program that are not calls in the plain one. An input that the
  // function does not use is null. `inside` is empty.
  std::vector<Instance> pieces;
  std::vector<bool> is_whole;  // by piece: all parts and inputs were found
  // The expression of the plain program that each of the composed one stands for, where that is another one. What has
  // no counterpart has no entry. Borrows the composed program.
  ObjectMap<Expr> plain;

  // Returns what an expression of the composed program stands for: itself where there is no entry.
  Expr plain_of(const Expr& composed) const {
    const Expr* found = plain.find(composed.object());
    return found == nullptr ? composed : *found;
  }
};

// Compares the bodies of two programs, which compute the same, but for pieces that are composite functions in one of
// them and not in the other. Where calls of ops differ, it stops. Linear; uses no recursion.
Composition read_composition(const Expr& plain, const Expr& composed);
// Compares their mains.
Composition read_composition(const IRModule& plain, const IRModule& composed);

}  // namespace headrace::partition
