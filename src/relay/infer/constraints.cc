// Constraints of function types.
//
// A constraint, add(A, B) -> C, must hold where a function of that type is used: at a call, and where the function is
// passed for a function type that does not grant the same constraint. It is checked as a call of its op would be, with
// a variable for each input type, and may wait as a call may; the op's result type and the constraint's result must be
// equal.
#include "ir/type_parts.h"
#include "relay/infer/check_kind.h"
#include "relay/infer/inferencer.h"

namespace headrace::relay {

std::string relation_fault(const TypeRelationNode& relation) {
  const std::string text = to_string(Type(ref(&relation)));
  const Op op = find_op(relation.name);
  if (!op) return fmt::format("the constraint {} names no op, and only the relations of ops can be asked", text);
  if (op->find(kTypeRelation) == nullptr)
    return fmt::format("the constraint {} cannot be asked: the op has no type relation", text);
  if (relation.num_inputs < 0 || relation.args.size() != static_cast<size_t>(relation.num_inputs) + 1)
    return fmt::format("the constraint {} must have one result; it relates {} types and has {} inputs", text,
                       relation.args.size(), relation.num_inputs);
  if (any_type(ref(&relation), [](const Type& part) { return !part; }))
    return fmt::format("the constraint {} has a part that is missing", text);
  if (op->num_inputs >= 0 && op->num_inputs != relation.num_inputs)
    return fmt::format("the constraint {} must have {} inputs, as the op has", text, op->num_inputs);
  if (relation.attrs && !relation.attrs.as<AttrsNode>())
    return fmt::format("the attributes of the constraint {} are a {}", text, relation.attrs->key());
  return "";
}

// Reports a constraint once for each place, because a type may be unified with another more than once.
void Inferencer::fail_constraint(const TypeSolver::Owed& owed, const std::string& why) {
  if (!failed_constraints_.emplace(owed.place.object(), owed.declared.object()).second) return;
  const std::string declared = to_string(owed.declared);
  const Type here = resolved(owed.place, owed.relation);
  const std::string text = here ? to_string(here) : declared;
  errors_.add(owed.place->span, "",
              fmt::format("the constraint {} of a function's type{} {}", declared,
                          text == declared ? "" : fmt::format(", here {},", text), why));
}

// Asks a constraint as a call that is typed by the constraint's result; the call is not part of the program.
void Inferencer::ask_constraint(const TypeSolver::Owed& owed) {
  const auto* relation = owed.relation.as<TypeRelationNode>();
  if (relation == nullptr) return fail_constraint(owed, "is not a relation of an op and cannot be asked");
  if (const std::string fault = relation_fault(*relation); !fault.empty())
    return fail_constraint(owed, "cannot be asked: " + fault);
  Array<Expr> args;
  for (size_t i = 0; i + 1 < relation->args.size(); ++i) {
    const Var arg = make_var("input");
    memo_.emplace(arg.get(), Typed{arg, relation->args[i]});
    args.push_back(arg);
  }
  const Call call = make_call(get_op(relation->name), args, relation->attrs.cast<AttrsNode>(), {}, owed.place->span);
  memo_.emplace(call.get(), Typed{call, relation->args.back()});
  constraint_of_.emplace(call.get(), constraints_.size());
  constraints_.push_back({call, owed});
  later(call, 1);
}

void Inferencer::ask_constraints() {
  for (const TypeSolver::Owed& owed : solver_.take_owed()) {
    const Type here = resolved(owed.place, owed.relation);
    const bool is_granted = std::any_of(owed.granted.begin(), owed.granted.end(),
                                        [&](const Type& granted) { return same_type(here, granted); });
    if (!is_granted) ask_constraint(owed);
  }
}

void Inferencer::visit_constraint(const Constraint& constraint, const std::vector<Type>& arg_types) {
  const Call call = constraint.call;
  const TypeSolver::Owed owed = constraint.owed;
  try {
    const Type given = relate(call, arg_types);
    if (!given) return wait(call, arg_types);
    const Type result = type_of(call);
    if (result && !solver_.unify(result, given))
      fail_constraint(owed, fmt::format("does not hold: the op gives {}{}", to_string(given), solver_.why()));
  } catch (const UserError& error) {
    fail_constraint(owed, fmt::format("does not hold: {}", error.message()));
  }
  waiting_nodes_.erase(call.get());
}

// Reports constraints that still wait at the end. After another error they may wait for a type that the error left
// open.
void Inferencer::report_constraints() {
  const bool is_first = errors_.empty();
  for (const Constraint& constraint : constraints_) {
    if (waiting_nodes_.erase(constraint.call.get()) != 0 && is_first)
      fail_constraint(constraint.owed, "is not solved: the argument types do not determine the result");
  }
  std::erase_if(asked_last_, [&](const Expr& node) { return constraint_of_.contains(node.get()); });
}

}  // namespace headrace::relay
