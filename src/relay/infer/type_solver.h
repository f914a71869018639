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
// kept until other unknowns are settled. `?` agrees with every dimension, and a type that must be both `?` and 3 is
// `?`, which binds nothing: a later place may know more. Recursion is as deep as a type, which kMaxTypeDepth bounds.
#pragma once

#include <unordered_set>

#include "relay/infer/type_match.h"

namespace headrace::relay {

class TypeSolver {
 public:
  // Says which symbols stand for themselves, being bound by a function around this place. Others in a function's type
  // are that function's own.
  using IsFixed = std::function<bool(const PrimVarNode*)>;
  explicit TypeSolver(IsFixed is_fixed) : is_fixed_(std::move(is_fixed)) {}

  // Makes an unknown dimension, which prints by the name of the symbol that it stands for.
  PrimExpr unknown_dim(const std::string& name);
  bool is_unknown_dim(const PrimExpr& dim) const;

  // Returns `type` with settled unknowns replaced; the type itself when there are none. UserError when it would nest
  // deeper than kMaxTypeDepth.
  Type resolve(const Type& type);
  // Returns the unknowns that are left in a type, each once, in order.
  std::vector<const Object*> unknowns(const Type& type);
  bool is_open(const Type& type) { return !unknowns(type).empty(); }
  // Remembers a type without unknowns, which will never have any. Many nodes may share one wide tuple type (each let
  // before a wide result), and its items need not be visited for each of them.
  void remember_closed(const Type& type);
  bool is_remembered(const Type& type) const { return closed_.contains(type.object()); }

  // Makes two types equal and returns the result; null when they differ, and then some unknowns may be settled.
  // Functions in `a` are expected, those in `b` are given: where `a` takes anything, so must `b`.
  Type unify(const Type& a, const Type& b);
  // Returns why a unify() since the last set_place() failed, where the two types alone do not show it; else empty.
  const std::string& why() const { return why_; }
  // Returns the type of a value that comes from either of two branches.
  Type join(const Type& a, const Type& b);

  // Returns the signature at one of its uses: its type parameters are `type_args`, or unknown when there are none
  // given; its own symbols are unknown dimensions, appended to `dims`. All symbols are its own when `is_global`. Its
  // constraints are owed from here on, and the result has none.
  FuncType instantiate(const FuncTypeNode& function, const Array<Type>& type_args, bool is_global,
                       std::vector<PrimExpr>* dims = nullptr);

  // A constraint of a function's type that a use of the function must meet.
  struct Owed {
    Type declared;        // as the type has it
    Type relation;        // of the types of this use
    Array<Type> granted;  // constraints of the type that the function is given for: they hold
    Expr place;
  };
  // Returns the constraints of functions instantiated since the last call.
  std::vector<Owed> take_owed() { return std::exchange(owed_, {}); }

  // Settles the unknown dimensions that an equation from earlier determines by now. False when there was none.
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
  // Dimensions that had to be equal when unknowns were in them, and are not.
  struct Equation {
    PrimExpr a, b;
    Expr place;
    bool is_broken = false;  // whatever its unknowns are
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
  enum class Outcome : uint8_t { open, settled, none };
  Outcome solve_dim(const PrimExpr& a, const PrimExpr& b);
  Type unify_tensors(const TensorType& a, const TensorType& b);
  Type unify_functions(const FuncTypeNode& a, const FuncTypeNode& b);
  std::optional<Array<Type>> unify_all(const Array<Type>& a, const Array<Type>& b);

  IsFixed is_fixed_;
  std::unordered_map<const Object*, Type> types_;             // settled unknown types
  std::unordered_map<const PrimVarNode*, PrimExpr> dims_;     // settled unknown dimensions
  std::unordered_map<const PrimVarNode*, PrimExpr> unknown_;  // unknown dimensions that are not settled
  std::unordered_map<const Object*, Type> closed_;            // those that are remembered
  std::vector<Type> kept_;                                    // keeps the keys of types_ alive
  std::vector<PrimExpr> kept_dims_;
  std::vector<const Object*> settled_;
  std::vector<Equation> equations_;
  std::vector<Owed> owed_;
  int64_t budget_ = 0;  // parts of the type that is being resolved
  std::string why_;
  Expr place_;
};

}  // namespace headrace::relay
