#include "tools/headrace/bisection.h"

#include "partition/place.h"
#include "tools/headrace/shown_text.h"

namespace headrace::tools {

namespace {

using Rows = std::vector<size_t>;

// The rows of ops that a plan puts on a backend, and that could be native.
Rows rows_on_backends(const partition::Plan& plan) {
  Rows rows;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const std::string& backend = plan.ops[i].backend;
    if (backend != partition::kNative && backend != partition::kExternal) rows.push_back(i);
  }
  return rows;
}

// The plan with all of `rows` native but those from `begin` to before `end`.
partition::Plan with_only(const partition::Plan& plan, const Rows& rows, size_t begin, size_t end) {
  partition::Plan made = plan;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < begin || i >= end) made.ops[rows[i]].backend = partition::kNative;
  }
  return made;
}

}  // namespace

Bisection bisect(const partition::Plan& plan, const std::function<bool(const partition::Plan&)>& is_right) {
  const Rows rows = rows_on_backends(plan);
  Bisection found;
  const auto is_right_with = [&](size_t begin, size_t end) {
    ++found.num_compiles;
    return is_right(with_only(plan, rows, begin, end));
  };
  if (rows.empty()) {
    found.failure = "placed by itself, none of its ops goes to a backend";
    return found;
  }
  if (!is_right_with(0, 0)) return found;
  size_t right = 0, wrong = rows.size();  // numbers of ops on backends, the first ones
  while (wrong - right > 1) {
    const size_t middle = right + (wrong - right) / 2;
    (is_right_with(0, middle) ? right : wrong) = middle;
  }
  if (wrong == rows.size() && is_right_with(0, wrong)) {
    found.failure =
        "compiled by itself it is right; it is wrong beside the regions that it was compiled with, or by an op that "
        "the backend says it does not take";
    return found;
  }
  const partition::PlannedOp& op = plan.ops[rows[right]];
  const bool alone = right == 0 || !is_right_with(right, wrong);
  found.guilty = GuiltyOp{.name = op.name, .kind = op.kind, .backend = op.backend, .is_guilty_alone = alone};
  return found;
}

std::string explain(const Bisection& bisection) {
  if (!bisection.failure.empty()) return "the op that causes the error cannot be found: " + shown(bisection.failure);
  if (!bisection.guilty) return "the error is above the limit with all ops native, too, so no backend causes it";
  const GuiltyOp& op = *bisection.guilty;
  return fmt::format("the error is caused by {} at {}, computed by {}: {}", shown(op.kind), shown(op.name),
                     shown(op.backend),
                     op.is_guilty_alone ? "with this op alone on a backend the error is above the limit"
                                        : "with this op and those before it on backends the error is above the limit; "
                                          "with either alone it is within the limit");
}

Report report_of(const Bisection& bisection) {
  Value guilty;
  if (const auto& op = bisection.guilty)
    guilty = Value(Report{{"op", Value(op->name)},
                          {"kind", Value(op->kind)},
                          {"backend", Value(op->backend)},
                          {"alone", Value(op->is_guilty_alone)}});
  return {{"guilty", guilty},
          {"compiles", Value(static_cast<int64_t>(bisection.num_compiles))},
          {"failure", bisection.failure.empty() ? Value() : Value(bisection.failure)}};
}

}  // namespace headrace::tools
