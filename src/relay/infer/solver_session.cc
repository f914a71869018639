#include "relay/infer/solver_session.h"

#include "base/count_of.h"
#include "relay/expr.h"
#include "relay/op_keys.h"

namespace headrace::relay {

SolverSession::SolverSession() : solver_([](const PrimVarNode*) { return true; }) {}

void SolverSession::add(const Op& op, const Array<Type>& types) {
  if (types.size() < 2)
    throw_user_error("a constraint relates inputs and a result, got {}", count_of(types.size(), "type"));
  if (op && op->find(kTypeRelation) == nullptr) throw_user_error("the op {} has no type relation", op->name);
  if (op && op->num_inputs >= 0 && static_cast<size_t>(op->num_inputs) + 1 != types.size())
    throw_user_error("the relation of {} is between {} and a result, got {}", op->name,
                     count_of(op->num_inputs, "input"), count_of(types.size(), "type"));
  left_.push_back({op, types});
}

Type SolverSession::unify(const Type& a, const Type& b) {
  solver_.set_place({});
  const Type joined = solver_.join(a, b);
  if (!joined)
    throw_user_error("the type {} does not match {}{}", to_string(resolve(a)), to_string(resolve(b)), solver_.why());
  return resolve(joined);
}

// Returns whether the constraint needs to be asked no more.
bool SolverSession::meet(const Constraint& constraint) {
  const Type result = constraint.types.back();
  if (!constraint.op) {
    for (size_t i = 0; i + 1 < constraint.types.size(); ++i) unify(constraint.types[i], result);
    return true;
  }
  Array<Expr> args;
  std::vector<Type> arg_types;
  for (size_t i = 0; i + 1 < constraint.types.size(); ++i) {
    args.push_back(make_var("input"));
    arg_types.push_back(resolve(constraint.types[i]));
  }
  const Call call = make_call(constraint.op, args);
  const RelationInput input{*call, arg_types, [](size_t) { return std::nullopt; }, [](size_t) { return NDArray(); }};
  const Type given = (*constraint.op->find(kTypeRelation))(input);
  if (given) unify(given, result);
  return given.defined();
}

bool SolverSession::solve() {
  for (size_t before = left_.size() + 1; left_.size() < before;) {
    before = left_.size();
    std::erase_if(left_, [&](const Constraint& constraint) { return meet(constraint); });
  }
  return left_.empty();
}

}  // namespace headrace::relay
