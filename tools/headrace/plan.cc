// headrace plan: what two plans say differently.
#include <algorithm>

#include "base/count_of.h"
#include "base/read_text.h"
#include "driver/register_all.h"
#include "object/array.h"
#include "partition/plan_file/plan.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

struct PlanState {
  std::string action, before, after;
};

partition::Plan read_plan(const std::string& path) { return partition::parse_plan(read_text(path, "plan"), path); }

std::string backends_of(const partition::Plan& plan) {
  std::vector<std::string> names;
  for (const partition::PlannedBackend& one : plan.backends)
    names.push_back(one.version.empty() ? one.name : fmt::format("{} {}", one.name, one.version));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// The differences beside those of ops: "model", "backends", "costs", in words of the two plans.
std::vector<std::array<std::string, 3>> header_changes(const partition::Plan& before, const partition::Plan& after) {
  std::vector<std::array<std::string, 3>> changes;
  if (before.model_hash != after.model_hash) changes.push_back({"model", before.model_hash, after.model_hash});
  if (backends_of(before) != backends_of(after))
    changes.push_back({"backends", backends_of(before), backends_of(after)});
  const auto costs = [](const partition::Plan& plan) { return plan.costs_hash.empty() ? "none" : plan.costs_hash; };
  if (before.costs_hash != after.costs_hash) changes.push_back({"costs", costs(before), costs(after)});
  return changes;
}

// An op that only one of the plans has counts as one that differs.
std::string count_of_changes(const partition::Plan& before, const partition::Plan& after,
                             const std::vector<partition::PlanChange>& changes) {
  const auto num_new =
      std::count_if(changes.begin(), changes.end(), [](const auto& one) { return one.before.empty(); });
  const std::string text =
      fmt::format("{} of {} differ", changes.size(), count_of(std::ssize(before.ops) + num_new, "op"));
  return before.model_hash == after.model_hash ? text : "the plans are for different models: " + text;
}

int diff(const PlanState& state, const Common& common) {
  driver::register_all();  // plans may name backends by their aliases
  const partition::Plan before = read_plan(state.before), after = read_plan(state.after);
  const std::vector<std::array<std::string, 3>> header = header_changes(before, after);
  const std::vector<partition::PlanChange> changes = partition::compare_plans(before, after);
  const bool is_equal = header.empty() && changes.empty();
  if (common.json) {
    Array<Value> plans, ops;
    for (const auto& [what, one, other] : header)
      plans.push_back(Value(Report{{"what", Value(what)}, {"before", Value(one)}, {"after", Value(other)}}));
    for (const partition::PlanChange& change : changes)
      ops.push_back(Value(Report{{"name", Value(change.name)},
                                 {"kind", Value(change.kind)},
                                 {"before", change.before.empty() ? Value() : Value(change.before)},
                                 {"after", change.after.empty() ? Value() : Value(change.after)}}));
    std::cout << to_json({{"equal", Value(is_equal)}, {"plans", Value(plans)}, {"ops", Value(ops)}});
    return is_equal ? HR_OK : HR_MISMATCH;
  }
  for (const auto& [what, one, other] : header) print_out("{}: {} -> {}\n", what, shown(one), shown(other));
  std::vector<std::vector<std::string>> rows{{"op", "kind", "before", "after"}};
  for (const partition::PlanChange& change : changes)
    rows.push_back({change.name, change.kind, change.before.empty() ? "-" : change.before,
                    change.after.empty() ? "-" : change.after});
  if (!changes.empty()) std::cout << to_table(rows);
  print_out("{}\n", is_equal ? "the plans put every op on the same backend" : count_of_changes(before, after, changes));
  return is_equal ? HR_OK : HR_MISMATCH;
}

}  // namespace

Verb add_plan(CLI::App& app, const Common& common) {
  auto state = std::make_shared<PlanState>();
  CLI::App* verb = app.add_subcommand("plan", "Compare two plans, which say where each op of a model goes");
  takes_word(verb->add_option("action", state->action, "What to do: diff")->required(), "action", {"diff"});
  verb->add_option("before", state->before, "A plan file, as explain --save-plan writes it")
      ->required()
      ->type_name("FILE");
  verb->add_option("after", state->after, "Another plan file")->required()->type_name("FILE");
  verb->footer("The exit code is 0 if they say the same, and 5 if not.\nExample: headrace plan diff old.json new.json");
  return [state, &common] { return diff(*state, common); };
}

}  // namespace headrace::tools
