#include "driver/placing.h"

#include <fmt/ranges.h>

#include "artifact/trailer.h"
#include "base/read_text.h"
#include "driver/all_backends.h"
#include "relay/text/print.h"

namespace headrace::driver {

namespace {

// The hash of what a placement depends on: ops, attributes, types, small constants. Retrained weights leave it.
std::string hash_of(const IRModule& module) {
  std::vector<NDArray> weights;
  const std::string text = relay::print_module(module, {.weights = &weights, .show_types = true});
  return artifact::content_hash({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::vector<std::string> inputs_of(const IRModule& module) {
  std::vector<std::string> inputs;
  for (const relay::Var& param : module->lookup("main").cast<relay::FunctionNode>()->params)
    inputs.push_back(fmt::format("{}: {}", param->name_hint, to_string(param->checked_type())));
  return inputs;
}

// The backends of the plan, which are those that the options name, if they name any.
partition::Backends backends_of(const partition::Plan& plan, const CompileOptions& options) {
  partition::Backends backends;
  std::vector<std::string> names;
  for (const partition::PlannedBackend& one : plan.backends) {
    try {
      backends.push_back(require_backend(one.name));
    } catch (const UserError& error) {
      plan.source->fail(one.at.begin, one.at.end, error.message());
    }
    names.emplace_back(backends.back()->name());
  }
  if (options.backends.empty()) return backends;
  std::vector<std::string> wanted;
  for (const std::string& name : options.backends) wanted.emplace_back(require_backend(name)->name());
  if (names != wanted)
    throw_user_error("the plan '{}' is for the backends {}, and the options name {}; leave the options' list out",
                     plan.source->name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                     fmt::join(wanted, ", "));
  return backends;
}

}  // namespace

Placing make_placing(const IRModule& canonical, const CompileOptions& options) {
  Placing placing;
  if (options.plan.empty()) {
    for (const std::string& name : options.backends) placing.backends.push_back(require_backend(name));
    placing.module = partition::compose(canonical, placing.backends);
    placing.decider = std::make_unique<partition::OrderDecider>(placing.backends);
  } else {
    partition::Plan plan = partition::parse_plan(read_text(options.plan, "plan"), options.plan);
    placing.backends = backends_of(plan, options);
    placing.module = partition::compose(canonical, placing.backends);
    placing.decider = std::make_unique<partition::OrderDecider>(placing.backends);
    partition::check_is_current(plan, make_model_plan(canonical, placing));
    placing.decider = std::make_unique<partition::PlanDecider>(std::move(plan), placing.backends);
  }
  if (!options.overrides.empty())
    placing.decider =
        std::make_unique<partition::OverrideDecider>(std::move(placing.decider), options.overrides, placing.backends);
  return placing;
}

partition::Plan make_model_plan(const IRModule& canonical, const Placing& placing) {
  partition::Plan plan = partition::make_plan(placing.module, placing.backends, *placing.decider);
  plan.model_hash = hash_of(canonical);
  plan.inputs = inputs_of(canonical);
  return plan;
}

}  // namespace headrace::driver
