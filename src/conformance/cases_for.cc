#include <algorithm>

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

bool is_taken(const partition::Backend& backend, const IRModule& module) {
  bool takes_all = true;
  relay::post_order(module->lookup("main"), [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr && call->as_op() != nullptr) takes_all &= partition::verdict_of(backend, *call).ok();
  });
  return takes_all;
}

std::vector<Case> cases_for(const std::string& name) {
  driver::register_all();
  const auto backend = driver::require_backend(name);
  std::vector<Case> cases = op_cases();
  const auto add = [&](std::vector<Case> more) { std::move(more.begin(), more.end(), std::back_inserter(cases)); };
  add(structure_cases(taken_of(plain_ops(1), *backend, 1), taken_of(plain_ops(2), *backend, 2)));
  for (const partition::CompositePattern& pattern : backend->patterns()) add(pattern_cases(pattern));
  return cases;
}

}  // namespace headrace::conformance
