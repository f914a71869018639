// The rules a relay program keeps, checked in this order for each function:
//   1. no child is null; a call's callee is an op, a global, a constructor or another expression, never null;
//   2. every variable is bound at most once in a function of the module and all it holds: by a parameter, a let or a
//      pattern; another function of the module may bind it again (a program from outside is given such variables
//      where it meets passes, interpreter or compiler: unique_binders.h);
//   3. a bound variable is used only where its binder reaches: a parameter in its function's body, a let variable in
//      its value and body, a pattern variable in its clause; a function of a module has no free variables;
//   4. a TupleGetItem of a Tuple has an index within it;
//   5. a GlobalVar names a function of the module;
//   6. if asked, every expression but ops and constructors has a checked type.
// Expressions may be shared freely; a shared node is checked in the scope where it is met first.
#pragma once

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::relay {

struct VerifyOptions {
  bool types = false;  // rule 6
};

// Returns all breaches, each as "place: rule"; empty when the program is well-formed. Linear in the program's size.
std::vector<std::string> find_breaches(const IRModule& module, const VerifyOptions& options = {});
// Returns the breaches of an expression, which may have free variables.
std::vector<std::string> find_breaches(const Expr& expr, const VerifyOptions& options = {});

// The first breaches of rules 2 and 3, in a function of a module (`is_closed`) or in an expression that may have free
// variables: a variable that is bound twice, and one that is used outside of its scope; null for none.
struct VariableBreaches {
  Var bound_twice, outside;
};
VariableBreaches find_variable_breaches(const Expr& expr, bool is_closed);

// Throws a UserError that lists the breaches, if there are any.
void verify(const IRModule& module, const VerifyOptions& options = {});

}  // namespace headrace::relay
