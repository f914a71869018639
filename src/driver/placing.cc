#include "driver/placing.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "artifact/trailer.h"
#include "base/count_of.h"
#include "base/read_text.h"
#include "driver/all_backends.h"
#include "driver/check_options.h"
#include "driver/cost_cache.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "partition/json_text.h"
#include "partition/override_decision.h"
#include "partition/plan_file/plan_pieces.h"
#include "pass/config.h"
#include "passes/rewrite/effects.h"
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
    throw_user_error(
        "the plan '{}' is for the backends {}, and the options name {}; leave out the list of backends "
        "(--backends, backends=)",
        plan.source->name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), fmt::join(wanted, ", "));
  return backends;
}

// Returns the text of the costs that the options name; without a name for none.
partition::NamedText costs_text(const CompileOptions& options) {
  if (options.costs.empty()) return {};
  if (options.costs == kCachedCosts)
    return read_cost_cache(choose_target(codegen::NativeCompiler::load(), options.target).cpu, threads_of(options));
  return {.text = read_text(options.costs, "table of costs"), .name = options.costs};
}

std::shared_ptr<const partition::CostTable> parse_costs(const partition::NamedText& text,
                                                        const partition::Backends& backends,
                                                        const codegen::NativeTarget& target,
                                                        const CompileOptions& options) {
  const int threads = threads_of(options);
  partition::CostTable table = partition::parse_cost_table(text);
  if (options.costs == kCachedCosts) partition::drop_other_versions(table, backends);
  if (table.cpu != target.cpu || table.threads != threads)
    throw_user_error(
        "{}: the costs are of {} on {}, and the model is compiled for {} on {}; measure again with headrace profile{}",
        text.name, count_of(table.threads, "thread"), table.cpu, count_of(threads, "thread"), target.cpu,
        table.cpu == target.cpu ? fmt::format(", or give --threads {}", table.threads) : "");
  return std::make_shared<const partition::CostTable>(std::move(table));
}

// Returns the hash of a file of costs; empty for no file.
std::string hash_of(const partition::NamedText& costs) {
  if (costs.name.empty()) return {};
  return artifact::content_hash({reinterpret_cast<const uint8_t*>(costs.text.data()), costs.text.size()});
}

// Returns op_costs() for options whose file of costs has this text.
partition::OpCosts costs_of(const partition::Backends& backends, const CompileOptions& options,
                            const std::string& model, const partition::NamedText& measured) {
  const codegen::NativeTarget target = choose_target(codegen::NativeCompiler::load(), options.target);
  partition::CostModel costs{.machine = machine_of(target), .threads = threads_of(options), .model = model};
  if (!measured.name.empty()) costs.measured = parse_costs(measured, backends, target, options);
  return {backends, std::move(costs)};
}

Placing place_by_order(const IRModule& canonical, const partition::Backends& backends) {
  const IRModule program = backends.empty() ? canonical : passes::in_order(canonical).module;
  partition::PatternRefusals refusals;
  const IRModule split = partition::compose(program, backends, &refusals);
  return {.program = program,
          .decision = std::make_shared<partition::OrderDecision>(split, backends, refusals.of_split(program, split))};
}

bool has_plan(const CompileOptions& options) { return !options.plan.empty() || options.plan_text; }

partition::Plan plan_of(const CompileOptions& options) {
  const std::string text = options.plan_text ? *options.plan_text : read_text(options.plan, "plan");
  return partition::parse_plan(text, options.plan.empty() ? "plan" : options.plan);
}

void set_model(partition::Plan& plan, const IRModule& canonical) {
  plan.model_hash = hash_of(canonical);
  plan.inputs = inputs_of(canonical);
}

Placing place_by_plan(const IRModule& canonical, const CompileOptions& options) {
  partition::Plan plan = plan_of(options);
  const partition::Backends backends = backends_of(plan, options);
  const IRModule program = passes::in_order(canonical).module;
  const partition::PlanNames names(program);
  partition::Plan now = partition::make_native_plan(names, backends);
  set_model(now, canonical);
  now.costs_hash = hash_of(costs_text(options));
  partition::check_is_current(plan, now);
  partition::PatternRefusals refusals;
  const IRModule split = partition::split_of_plan(plan, names, program, backends, refusals);
  const std::string costs_hash = plan.costs_hash;
  return {.program = program,
          .decision = std::make_shared<partition::PlanDecision>(split, std::move(plan), backends, names,
                                                                refusals.of_split(program, split)),
          .costs_hash = costs_hash};
}

// Returns the placement before overrides.
Placing place_without_overrides(const IRModule& canonical, const CompileOptions& options) {
  if (has_plan(options)) return place_by_plan(canonical, options);
  const partition::Backends backends = chosen_backends(options);
  if (options.placement == Placement::order || backends.empty()) return place_by_order(canonical, backends);
  const partition::NamedText measured = costs_text(options);
  const std::string model = measured.name.empty() ? "" : model_hash(canonical);
  Placing placing = place_by_cost(canonical, costs_of(backends, options, model, measured));
  placing.costs_hash = hash_of(measured);
  return placing;
}

Placing make_placing(const IRModule& canonical, const CompileOptions& options) {
  Placing placing = place_without_overrides(canonical, options);
  if (!options.overrides.empty())
    placing.decision = std::make_shared<partition::OverrideDecision>(placing.decision, options.overrides);
  return placing;
}

}  // namespace

// The number of processors of this machine must not decide, so that the artifact's bytes do not depend on it.
int threads_of(const CompileOptions& options) {
  const auto cores = static_cast<int>(options.target->count("num-cores"));
  return options.threads > 0 ? options.threads : std::max(cores, 1);
}

Placement read_placement(const std::string& option, const std::string& name) {
  if (name == "order") return Placement::order;
  if (name == "cost") return Placement::cost;
  throw_user_error("{} is '{}'; it must be 'order' or 'cost'", option, name);
}

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

void read_plan_file(CompileOptions& options) {
  check_placement(options);
  if (!options.plan.empty()) options.plan_text = read_text(options.plan, "plan");
}

partition::Backends possible_backends(const CompileOptions& options) {
  register_all();
  check_options(options);
  return has_plan(options) ? backends_of(plan_of(options), options) : chosen_backends(options);
}

std::string model_hash(const IRModule& canonical) {
  try {
    return hash_of(canonical);
  } catch (const UserError&) {
    return {};
  }
}

partition::OpCosts op_costs(const partition::Backends& backends, const CompileOptions& options,
                            const std::string& model) {
  return costs_of(backends, options, model, costs_text(options));
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
  std::map<std::pair<std::string, std::string>, std::string> names;  // by which an option of a backend was given
  for (const auto& [backend, given] : options.backend_options) {
    const std::string own(require_backend(backend)->name());
    for (const auto& [option, value] : given) {
      const auto [known, is_new] = names.emplace(std::pair(own, option), backend);
      if (!is_new)
        throw_user_error(
            "the option '{}' of the backend '{}' is given twice, under its names '{}' and '{}'; give it once", option,
            own, known->second, backend);
    }
    add(own, given);
  }
  return all;
}

Placing place_by_cost(const IRModule& canonical, partition::OpCosts costs) {
  const IRModule program = passes::in_order(canonical).module;
  return {.program = program, .decision = std::make_shared<partition::CostDecision>(program, std::move(costs))};
}

CompileOptions without_placement(CompileOptions options) {
  options.placement = Placement::order;
  options.costs.clear();
  options.plan.clear();
  options.plan_text.reset();
  options.overrides.clear();
  if (!options.target->list("extern").empty()) {
    Map<std::string, Value> parts = export_target(options.target);
    parts.erase("extern");
    options.target = make_target_from_config(parts);
  }
  return options;
}

void drop_unused_options(CompileOptions& options, const partition::Backends& backends) {
  std::erase_if(options.backend_options, [&](const auto& given) {
    const std::string own(require_backend(given.first)->name());
    return std::none_of(backends.begin(), backends.end(), [&](const auto& one) { return one->name() == own; });
  });
}

namespace {

// Backends check their options where they compile. Here they compile nothing.
void check_options_of_backends(const CompileOptions& options, const partition::Backends& backends,
                               const std::vector<partition::Region>& regions) {
  std::map<std::string, std::shared_ptr<const partition::Backend>> used;
  for (const partition::Region& region : regions) used[region.backend] = partition::find_backend(region.backend);
  for (const auto& backend : backends) used[std::string(backend->name())] = backend;
  for (const auto& [name, given] : backend_options(options)) {
    const auto backend = used.find(name);
    if (backend == used.end() || backend->second == nullptr || given.empty()) continue;
    const codegen::NativeTarget machine = choose_target(codegen::NativeCompiler::load(), options.target);
    backend->second->compile({.regions = {}, .target = options.target, .machine = machine, .options = given});
  }
}

}  // namespace

void check_backend_options(const CompileOptions& options, const partition::Backends& backends,
                           const std::vector<partition::Region>& regions) {
  for (const auto& [name, given] : options.backend_options) {
    // One that a function makes is another object each time.
    const std::string own(require_backend(name)->name());
    const bool is_chosen =
        std::any_of(backends.begin(), backends.end(), [&](const auto& backend) { return backend->name() == own; });
    const bool has_regions = std::any_of(regions.begin(), regions.end(), [&](const partition::Region& region) {
      const auto backend = partition::find_backend(region.backend);
      return backend != nullptr && backend->name() == own;
    });
    if (!is_chosen && !has_regions)
      throw_user_error(
          "the options of the backend '{}' have no effect, because this compile does not use it; "
          "add it to the backends, or leave its options out",
          name);
  }
  check_options_of_backends(options, backends, regions);
}

PlacedModel place_model(IRModule canonical, const CompileOptions& options) {
  PlacedModel model{.placing = make_placing(canonical, options), .placed = {}};
  canonical = {};
  model.placed = partition::place(*model.placing.decision);
  check_backend_options(options, model.placing.decision->backends(), model.placed.regions);
  return model;
}

partition::Plan make_model_plan(const IRModule& canonical, const Placing& placing) {
  partition::Plan plan = partition::make_plan(partition::PlanNames(placing.program), *placing.decision);
  set_model(plan, canonical);
  plan.costs_hash = placing.costs_hash;
  return plan;
}

}  // namespace headrace::driver
