#include "partition/plan_file/plan_decision.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/near_names.h"
#include "ops/call_fusion.h"
#include "partition/place.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

using NameAndKind = std::pair<std::string, std::string>;

std::string show(const PlannedOp& op) { return fmt::format("the op '{}' of kind {}", op.name, op.kind); }

bool is_external(const CallNode& call) { return call.as_op() != nullptr && ops::external_of(ref(&call)) != nullptr; }

std::vector<PlannedBackend> planned(const Backends& backends) {
  std::vector<PlannedBackend> rows;
  for (const auto& backend : backends)
    rows.push_back({.name = std::string(backend->name()), .version = backend->version()});
  return rows;
}

}  // namespace

Plan make_plan(const PlanNames& names, const Decision& decision) {
  Plan plan;
  plan.backends = planned(decision.backends());
  const Labels& labels = decision.labels();
  std::set<NameAndKind> known;
  for (const NamedCall& one : names.calls_of(decision.module())) {
    if (!known.emplace(one.name, one.kind).second) continue;
    const auto label = labels.find(one.call);
    PlannedOp op{.name = one.name, .kind = one.kind, .backend = kNative};
    for (const int32_t part : one.parts) op.parts.push_back(names.ops()[static_cast<size_t>(part)]);
    Verdict why;
    if (label != labels.end() && !label->second.empty()) {
      op.backend = label->second;
      why = decision.why_in_plan(*one.call, op.backend);
    } else if (is_external(*one.call)) {
      op.backend = kExternal;
      why.message = fmt::format("calls the function '{}'", *ops::external_of(ref(one.call)));
    } else {
      why = decision.why_in_plan(*one.call, kNative);
    }
    op.reason = why.reason;
    op.message = why.message;
    plan.ops.push_back(std::move(op));
  }
  return plan;
}

Plan make_native_plan(const PlanNames& names, const Backends& backends) {
  Plan plan;
  plan.backends = planned(backends);
  for (const PlannedPart& op : names.ops()) plan.ops.push_back({.name = op.name, .kind = op.kind, .backend = kNative});
  return plan;
}

namespace {

// Returns the plan with a row for each op of a pattern instead of the pattern's row.
Plan by_ops(const Plan& plan) {
  Plan by_ops = plan;
  by_ops.ops.clear();
  for (const PlannedOp& row : plan.ops) {
    if (row.parts.empty()) by_ops.ops.push_back(row);
    for (const PlannedPart& part : row.parts)
      by_ops.ops.push_back({.name = part.name, .kind = part.kind, .backend = row.backend});
  }
  return by_ops;
}

// Says what changed in a model from one plan to another.
std::string model_change(const Plan& plan, const Plan& now) {
  if (plan.inputs != now.inputs)
    return fmt::format("its inputs were {} and are {}", fmt::join(plan.inputs, ", "), fmt::join(now.inputs, ", "));
  for (const PlanChange& change : compare_plans(by_ops(plan), by_ops(now))) {
    if (change.after.empty())
      return fmt::format("the op '{}' of kind {} is not in it any more", change.name, change.kind);
    if (change.before.empty()) return fmt::format("the op '{}' of kind {} is new", change.name, change.kind);
  }
  return "its ops are the same, and their attributes, shapes or order are not";
}

}  // namespace

void check_is_current(const Plan& plan, const Plan& now) {
  for (const PlannedBackend& backend : plan.backends) {
    for (const PlannedBackend& other : now.backends) {
      if (backend.name == other.name && backend.version != other.version)
        plan.source->fail(
            backend.at.begin, backend.at.end,
            fmt::format("the plan is for version '{}' of {}, and here is version '{}'; make the plan again",
                        backend.version, backend.name, other.version));
    }
  }
  if (plan.model_hash != now.model_hash)
    plan.source->fail(
        plan.hash_at.begin, plan.hash_at.end,
        fmt::format("the plan is for another model, or for other options of its compile: {}; make the plan "
                    "again",
                    model_change(plan, now)));
  if (now.costs_hash.empty() || now.costs_hash == plan.costs_hash) return;
  plan.source->fail(plan.costs_at.begin, plan.costs_at.end,
                    plan.costs_hash.empty()
                        ? "the plan was made without measured costs; leave the costs out, or make the plan by them"
                        : "the plan was made by other measured costs; make the plan again, or leave the costs out");
}

// Throws for the row of an op that only a pattern of the plan computes.
void PlanDecision::check_is_no_part(const PlannedOp& row) const {
  for (const PlannedOp& piece : plan_.ops) {
    for (const PlannedPart& part : piece.parts) {
      if (part.name == row.name && part.kind == row.kind && row.parts.empty())
        plan_.source->fail(row.at.begin, row.at.end,
                           fmt::format("{} is a part of the row '{}' of the pattern {} already; remove one of the two",
                                       show(row), piece.name, piece.kind));
    }
  }
}

void PlanDecision::check_names(const std::vector<NamedCall>& calls) const {
  std::set<NameAndKind> in_model, in_plan;
  std::vector<std::string> names;
  for (const NamedCall& one : calls) {
    in_model.emplace(one.name, one.kind);
    names.push_back(one.name);
  }
  for (const PlannedOp& row : plan_.ops) {
    in_plan.emplace(row.name, row.kind);
    if (in_model.contains({row.name, row.kind})) continue;
    check_is_no_part(row);
    const std::vector<std::string> near = near_names(row.name, names, '/');
    const bool is_kind_wrong = std::find(names.begin(), names.end(), row.name) != names.end();
    std::string there;
    for (const NamedCall& one : calls) {
      if (near.empty() || one.name != (is_kind_wrong ? row.name : near.front())) continue;
      there = fmt::format("; there is '{}' of kind {}", one.name, one.kind);
      break;
    }
    plan_.source->fail(row.at.begin, row.at.end,
                       fmt::format("the model has no op '{}' of kind {}{}", row.name, row.kind, there));
  }
  for (const NamedCall& one : calls) {
    if (!in_plan.contains({one.name, one.kind}))
      plan_.source->fail(
          plan_.ops_at.begin, plan_.ops_at.begin + 1,
          fmt::format("the op '{}' of kind {} of the model is not in the list; add it", one.name, one.kind));
  }
}

void PlanDecision::check_row(const PlannedOp& row, const CallNode& call) const {
  const auto fail = [&](const std::string& message) {
    plan_.source->fail(row.backend_at.begin, row.backend_at.end, message);
  };
  if (row.backend == kExternal && !is_external(call))
    fail(fmt::format("{} calls no function of the process, so it cannot be '{}'", show(row), kExternal));
  if (row.backend == kNative && is_external(call))
    fail(fmt::format("{} calls a function of the process, so it is '{}'", show(row), kExternal));
  if (row.backend == kNative || row.backend == kExternal) return;
  const Backend* backend = find_in(backends_, row.backend);
  if (backend == nullptr) fail(fmt::format("there is no backend '{}' here", row.backend));
  if (const std::string refusal = refusal_of(*backend, call); !refusal.empty())
    fail(fmt::format("{} does not take {}: {}", row.backend, show(row), refusal));
}

PlanDecision::PlanDecision(const IRModule& module, Plan plan, Backends backends, const PlanNames& names,
                           PatternRefusals refusals)
    : Decision(module, std::move(backends)), plan_(std::move(plan)) {
  refusals_ = std::move(refusals);
  const std::vector<NamedCall> calls = names.calls_of(module);
  check_names(calls);
  std::multimap<NameAndKind, const CallNode*> by_name;
  for (const NamedCall& one : calls) by_name.emplace(NameAndKind(one.name, one.kind), one.call);
  // In the order of the file, so that the first error is that of the first line.
  for (size_t i = 0; i < plan_.ops.size(); ++i) {
    const PlannedOp& row = plan_.ops[i];
    const auto [first, last] = by_name.equal_range({row.name, row.kind});
    for (auto one = first; one != last; ++one) {
      check_row(row, *one->second);
      rows_.emplace(one->second, i);
      if (row.backend != kNative && row.backend != kExternal) labels_.emplace(one->second, row.backend);
    }
  }
}

Verdict PlanDecision::why(const PlacedCall&, const std::string&) const {
  return {.reason = HR_REASON_PLACE_BY_PLAN, .message = kByPlan};
}

Verdict PlanDecision::why_in_plan(const CallNode& call, const std::string& backend) const {
  const auto row = rows_.find(&call);
  if (row == rows_.end()) return why(call, backend);
  return {.reason = plan_.ops[row->second].reason, .message = plan_.ops[row->second].message};
}

}  // namespace headrace::partition
