#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "conformance/cases.h"
#include "driver/all_backends.h"
#include "driver/explain.h"
#include "driver/register_all.h"
#include "partition/rules.h"
#include "relay/visit.h"

namespace headrace::conformance {

namespace {

// Returns those of the ops that the backend takes in float32 at (3, 4).
std::vector<std::string> taken_of(const std::vector<std::string>& ops, const partition::Backend& backend,
                                  int num_inputs) {
  const char* params =
      num_inputs == 1 ? "%x: Tensor[(3, 4), float32]" : "%x: Tensor[(3, 4), float32], %y: Tensor[(3, 4), float32]";
  std::vector<std::string> taken;
  for (const std::string& op : ops) {
    const Case one{.name = op,
                   .text = fmt::format("def @main({}) {{ {}({}) }}\n", params, op, num_inputs == 1 ? "%x" : "%x, %y")};
    if (is_taken(backend, module_of(one))) taken.push_back(op);
  }
  return taken;
}

}  // namespace

std::vector<std::pair<const relay::CallNode*, partition::Verdict>> verdicts_on(const partition::Backend& backend,
                                                                               const IRModule& module) {
  std::vector<std::pair<const relay::CallNode*, partition::Verdict>> verdicts;
  relay::post_order(module->lookup("main"), [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr && call->as_op() != nullptr) verdicts.emplace_back(call, partition::verdict_of(backend, *call));
  });
  return verdicts;
}

bool is_taken(const partition::Backend& backend, const IRModule& module) {
  const auto verdicts = verdicts_on(backend, module);
  return std::all_of(verdicts.begin(), verdicts.end(), [](const auto& one) { return one.second.ok(); });
}

bool is_chosen(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

std::vector<Case> cases_for(const std::string& name, const std::vector<std::string>& patterns) {
  driver::register_all();
  const auto backend = driver::require_backend(name);
  std::vector<Case> cases = op_cases(patterns);
  const auto add = [&](std::vector<Case> more) {
    std::copy_if(std::move_iterator(more.begin()), std::move_iterator(more.end()), std::back_inserter(cases),
                 [&](const Case& one) { return is_chosen(one.name, patterns); });
  };
  add(structure_cases(taken_of(plain_ops(1), *backend, 1), taken_of(plain_ops(2), *backend, 2)));
  for (const partition::CompositePattern& pattern : backend->patterns()) add(pattern_cases(pattern));
  if (cases.empty() && !patterns.empty())
    throw_user_error("no case has a name like '{}'; names are OP/CASE, so that '{}/*' has all of an op",
                     fmt::join(patterns, "', '"), patterns.front());
  return cases;
}

}  // namespace headrace::conformance
