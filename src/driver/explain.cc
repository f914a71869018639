#include "driver/explain.h"

#include <algorithm>

#include "driver/all_backends.h"
#include "driver/check_devices.h"
#include "driver/check_options.h"
#include "driver/check_size.h"
#include "driver/register_all.h"
#include "pass/instruments.h"
#include "passes/forms/bound_outputs.h"
#include "passes/pipeline.h"
#include "relay/infer/infer_type.h"
#include "relay/unique_binders.h"
#include "relay/verify.h"
#include "runtime/thread_pool.h"

namespace headrace::driver {

namespace {

// Rejects models that set attributes reserved for the compiler.
void check_attributes(const IRModule& module) {
  const auto* main = module->lookup("main").as<relay::FunctionNode>();
  if (main != nullptr && main->attrs.contains(passes::kBoundedOutputs))
    throw_at(main->span, "compile",
             fmt::format("@main has the attribute {}, which the compiler makes; compile the program without it",
                         passes::kBoundedOutputs));
}

}  // namespace

pass::PassContext make_context(const CompileOptions& options, ModuleCheck verify) {
  pass::PassContext context = options.passes;
  context.infer_type = {};
  context.threads = options.jobs > 0 ? options.jobs : runtime::num_processors();
  if (options.verify_each) context.instruments.push_back(pass::make_verify_instrument(std::move(verify)));
  return context;
}

pass::PassContext make_relay_context(const CompileOptions& options, NoteSink note) {
  pass::PassContext context = make_context(options, [](const IRModule& module) { relay::verify(module); });
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  context.note = std::move(note);
  return context;
}

IRModule run_canonical_passes(const IRModule& module, const pass::PassContext& context) {
  const IRModule typed = relay::infer_type(relay::unique_binders(module));
  check_attributes(typed);
  check_devices(typed);
  check_tensor_sizes(typed);
  return pass::run_passes(passes::canonical(), typed, context);
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

Explanation explain(const Model& model, const CompileOptions& options) {
  check_options(options);
  register_all();
  Explanation explanation;
  const auto note = [&](const pass::PassNote& one) { explanation.notes.push_back(one); };
  const IRModule canonical = run_canonical_passes(model.module, make_relay_context(options, note));
  partition::PlacedModule placed = partition::place(canonical, chosen_backends(options));
  explanation.placement = std::move(placed.placement);
  explanation.regions = std::move(placed.regions);
  return explanation;
}

}  // namespace headrace::driver
