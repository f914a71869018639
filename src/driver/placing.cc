#include "driver/placing.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "artifact/trailer.h"
#include "base/read_text.h"
#include "driver/all_backends.h"
#include "pass/config.h"
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
  std::vector<std::string> wanted;
  for (const auto& backend : chosen_backends(options)) wanted.emplace_back(backend->name());
  if (wanted.empty()) return backends;
  if (names != wanted)
    throw_user_error("the plan '{}' is for the backends {}, and the options name {}; leave the options' list out",
                     plan.source->name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                     fmt::join(wanted, ", "));
  return backends;
}

}  // namespace

partition::Backends chosen_backends(const CompileOptions& options) {
  std::vector<std::string> names = options.backends;
  for (const std::string& name : options.target->list("extern")) names.push_back(name);
  partition::Backends chosen;
  for (const std::string& name : names) {
    auto backend = require_backend(name);
    const auto is_it = [&](const auto& known) { return known->name() == backend->name(); };
    if (std::none_of(chosen.begin(), chosen.end(), is_it)) chosen.push_back(std::move(backend));
  }
  return chosen;
}

BackendOptions backend_options(const CompileOptions& options) {
  BackendOptions all;
  const auto add = [&](const std::string& backend, const Map<std::string, Value>& given) {
    const auto known = partition::find_backend(backend);
    Map<std::string, Value>& own = all[known ? std::string(known->name()) : backend];
    for (const auto& [option, value] : given) own.set(option, value);
  };
  for (const auto& [key, value] : options.passes.config) {
    if (const auto backend = pass::backend_of_key(key)) add(*backend, value.as<Map<std::string, Value>>());
  }
  for (const auto& [backend, given] : options.backend_options)
    add(std::string(require_backend(backend)->name()), given);
  return all;
}

Placing make_placing(const IRModule& canonical, const CompileOptions& options) {
  Placing placing;
  if (options.plan.empty()) {
    placing.backends = chosen_backends(options);
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
