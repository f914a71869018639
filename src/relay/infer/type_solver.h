// Unification of types and dimensions: the unknowns of one inference, and what is known of them.
//
// An unknown type is an IncompleteType node, an unknown dimension is a symbol made by the solver. unify() makes two
// types equal and settles unknowns on the way: it walks both types in parallel, and where one side is an unknown, binds
// it to the other side. Unknowns bound to each other form chains, which are shortened as they are followed, as in
// union-find. A binding that would contain its own unknown is refused, since the type would be infinite. resolve()
// replaces settled unknowns in a type.
//
// Dimensions are expressions, so structural unification is not enough. Two dimensions that are not canonically equal
// become an equation. It is solved where it is linear in its one unknown (n * 2 + 1 == 7 gives n == 3), and otherwise
// kept until other unknowns are settled. `?` agrees with every dimension. A dimension that must be both `?` and 3 is
// `?`, and an unknown is not settled by `?`: another expression may still say that it is 3. Recursion is as deep as a
// type, which kMaxTypeDepth (relay/infer/type_match.h) bounds.
#pragma once

#include <unordered_set>

#include "relay/infer/type_match.h"

namespace headrace::relay {

class TypeSolver {
 public:
  // Says which symbols are bound by a function around the expression that is inferred: they stay as they are. Other
  // symbols of a function's type are its own, and each use of the function may give them other values.
  using IsFixed = std::function<bool(const PrimVarNode*)>;
  explicit TypeSolver(IsFixed is_fixed) : is_fixed_(std::move(is_fixed)) {}

  // Makes an unknown dimension. Messages call it `name`, the symbol of a signature that it takes the place of.
  PrimExpr unknown_dim(const std::string& name);
  bool is_unknown_dim(const PrimExpr& dim) const;

  // Returns `type` with settled unknowns replaced; the type itself when there are none. UserError when it would nest
  // deeper than kMaxTypeDepth.
  Type resolve(const Type& type);
  // Returns the unknowns that are left in a type, each once, in order.
  std::vector<const Object*> unknowns(const Type& type);
  bool is_open(const Type& type) { return !unknowns(type).empty(); }
  // Remembers that a type has no unknowns, so that its items need not be visited again. Many nodes may share one wide
  // tuple type: each `let` of a chain has the type of the chain's result.
  void remember_closed(const Type& type);
  bool is_remembered(const Type& type) const { return closed_.contains(type.object()); }

  // Makes two types equal and returns the result; null when they differ, and then some unknowns may be settled.
  // Functions in `a` are expected, those in `b` are given: where a function of `a` takes a dimension `?`, that of `b`
  // must take one too.
  Type unify(const Type& a, const Type& b);
  // Returns why a unify() since the last set_place() failed, where the two types alone do not show it; else empty.
  const std::string& why() const { return why_; }
  // Returns the type of a value that comes from either of two branches.
  Type join(const Type& a, const Type& b);

  // Returns the signature of `function` for one use of it. `type_args` replace its type parameters; if `type_args` is
  // empty, unknown types do. Unknown dimensions, appended to `dims`, replace its own symbols, which are all of its
  // symbols when `is_global`. take_owed() returns its constraints from then on, and the result has none.
  FuncType instantiate(const FuncTypeNode& function, const Array<Type>& type_args, bool is_global,
                       std::vector<PrimExpr>* dims = nullptr);

  // A constraint of a function's type that a use of the function must meet.
  struct Owed {
    Type declared;        // the constraint as the function's type states it
    Type relation;        // the constraint with the types of this use
    Array<Type> granted;  // constraints that may be taken to hold, because the type expected of the function has them
    Expr place;
  };
  // Returns the constraints of functions instantiated since the last call.
  std::vector<Owed> take_owed() { return std::exchange(owed_, {}); }

  // Settles the unknown dimensions that one of the kept equations determines by now. Returns false when none does.
  bool solve_equations();
  // Makes an unknown dimension `?` if it is not settled.
  void settle_as_any(const PrimExpr& dim);
  // Makes all unknown dimensions `?`; returns false when there were none.
  bool settle_all_dims();

  // Sets the expression at which the following types are unified.
  void set_place(const Expr& place) {
    place_ = place;
    why_.clear();
  }
  // Two dimensions that must be equal, and that could not be compared yet because of the unknowns in them.
  struct Equation {
    PrimExpr a, b;
    Expr place;
    bool is_broken = false;  // the two differ for all values of the unknowns
  };
  std::vector<Equation> take_broken();

  // Returns the type with its outermost node resolved; parts may be unknown.
  Type root_of(const Type& type);

  // Returns the unknowns settled since this was asked last.
  std::vector<const Object*> take_settled() { return std::exchange(settled_, {}); }

 private:
  Type last_unknown(const Type& type);
  Type bind(const Type& unknown, const Type& type);
  PrimExpr bind_dim(const PrimExpr& unknown, const PrimExpr& dim);
  PrimExpr resolve_dim(const PrimExpr& dim);
  Type resolve_at(const Type& type, int depth);
  Type resolve_tensor(const TensorTypeNode& tensor);
  std::vector<const Object*> unknowns_of(const Type& type) const;
  // Returns the unknown dimensions in it, each once.
  std::vector<PrimExpr> unknowns_in(const PrimExpr& dim) const;
  Type unify_known(const Type& a, const Type& b);
  PrimExpr unify_dim(const PrimExpr& a, const PrimExpr& b);
  enum class Outcome : uint8_t { open, settled, none };  // not decided yet; an unknown got its value; no solution
  Outcome solve_dim(const PrimExpr& a, const PrimExpr& b);
  Type unify_tensors(const TensorType& a, const TensorType& b);
  Type unify_functions(const FuncTypeNode& a, const FuncTypeNode& b);
  std::optional<Array<Type>> unify_all(const Array<Type>& a, const Array<Type>& b);

  IsFixed is_fixed_;
  std::unordered_map<const Object*, Type> types_;             // settled unknown types
  std::unordered_map<const PrimVarNode*, PrimExpr> dims_;     // settled unknown dimensions
  std::unordered_map<const PrimVarNode*, PrimExpr> unknown_;  // unknown dimensions that are not settled
  std::unordered_map<const Object*, Type> closed_;            // types that remember_closed was given
  std::vector<Type> kept_;                                    // keeps the keys of types_ alive
  std::vector<PrimExpr> kept_dims_;
  std::vector<const Object*> settled_;
  std::vector<Equation> equations_;
  std::vector<Owed> owed_;
  int64_t budget_ = 0;  // how many more parts the type that is being resolved may have
  std::string why_;
  Expr place_;
};

}  // namespace headrace::relay
