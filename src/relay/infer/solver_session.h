// Lets a caller drive the type solver by hand, without a program: the calls that tests of type systems make. Inference
// itself uses TypeSolver through the Inferencer.
#pragma once

#include "ir/expr.h"
#include "relay/infer/type_solver.h"

namespace headrace::relay {

class SolverSession {
 public:
  SolverSession();

  // Adds a constraint that solve() will meet: the relation of `op` gives the last of `types` for those before it. A
  // null op stands for the identity, whose types, of any kind, are all equal. UserError when there are fewer than two
  // types, or the op has no relation or takes another number of inputs.
  void add(const Op& op, const Array<Type>& types);
  // Asks the constraints that are left until none of them determines anything more. Returns whether all are met.
  // UserError when one cannot be met.
  bool solve();
  // Makes two types equal and returns the result, with what is settled by now. Where both are functions, the more
  // general of the two may stand for the other. UserError names the two when they differ.
  Type unify(const Type& a, const Type& b);
  Type resolve(const Type& type) { return solver_.resolve(type); }

 private:
  struct Constraint {
    Op op;
    Array<Type> types;
  };
  bool meet(const Constraint& constraint);

  TypeSolver solver_;
  std::vector<Constraint> left_;
};

}  // namespace headrace::relay
