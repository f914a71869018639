// Finds the op that a backend computes wrongly: headrace verify compiles a model with ever fewer ops on backends.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "partition/plan_file/plan.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

struct GuiltyOp {
  std::string name, kind, backend;  // as the plan says them
  bool is_guilty_alone = false;     // the results are wrong, too, where it is the only op on a backend
};

struct Bisection {
  std::optional<GuiltyOp> guilty = {};  // nothing: the results are wrong, too, where all ops are native
  int num_compiles = 0;
  std::string failure = {};  // why it could not be looked for
};

// Returns the first op such that the results are right where the ops before it are as `plan` says and the others
// native, and wrong where this op is as the plan says, too. Asks is_right() about plans that are like `plan`, but with
// some ops native; as often as the logarithm of their number, and three times. A plan without an op on a backend and
// one whose results are right give a failure.
Bisection bisect(const partition::Plan& plan, const std::function<bool(const partition::Plan&)>& is_right);

// The sentence for users.
std::string explain(const Bisection& bisection);
Report report_of(const Bisection& bisection);

}  // namespace headrace::tools
