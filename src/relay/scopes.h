// Computes where each node of an expression is defined when it is printed as text or bound by a let.
#pragma once

#include "object/object_map.h"
#include "relay/expr.h"

namespace headrace::relay {

// The scopes of one expression form a tree. A function body, a branch, a clause, a let body and the braces around a let
// that is not a tail open one. A node is defined in the innermost scope that holds all its uses.
struct Scopes {
  struct Scope {
    int parent;
    std::vector<Expr> numbered;  // defined here as `%k = ...`, operands first
  };
  struct Placement {
    int scope = -1;
    int uses = 0;
    int tail_uses = 0;      // uses as the result of a scope or the value of a let
    bool is_value = false;  // a tail use was a let's value
    int number = -1;        // k; negative when the node is written where it is used
    int inner = -1;         // the first of the scopes that it opens; the others follow
  };
  std::vector<Scope> scopes;
  ObjectMap<Placement> placements;

  const Placement& at(const Expr& expr) const {
    const Placement* placement = placements.find(expr.object());
    HEADRACE_CHECK(placement != nullptr, "a {} has no place in a scope", expr->key());
    return *placement;
  }
  // Returns whether a let is written as a statement of the block whose tail it is, without braces of its own.
  bool is_flat_let(const Expr& expr) const {
    const Placement& place = at(expr);
    return expr.is<LetNode>() && place.number < 0 && !place.is_value;
  }
};

// Computes the scopes of an expression; scope 0 is the one whose result is `root`. Constants are placed on demand.
Scopes find_scopes(const Expr& root, bool places_constants = false);

// Returns for each scope the innermost scope around it, or itself, that is entered conditionally or repeatedly: a
// function body, a branch, a clause. 0 outside of all.
std::vector<int> find_blocks(const Expr& root, const Scopes& scopes);

// Returns for each scope the innermost one around it, or itself, that is the body of a function; 0 outside of all.
std::vector<int> find_function_scopes(const Expr& root, const Scopes& scopes);

// Returns whether an expression is written in place at every use: a variable, a constant or a name.
bool is_atomic(const ExprNode& node);
inline bool is_atomic(const Expr& expr) { return is_atomic(*expr); }

}  // namespace headrace::relay
