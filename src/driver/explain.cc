#include "driver/explain.h"

#include <algorithm>

#include "base/read_text.h"
#include "driver/all_backends.h"
#include "driver/check_devices.h"
#include "driver/check_options.h"
#include "driver/check_size.h"
#include "driver/register_all.h"
#include "driver/target.h"
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
  partition::Backends chosen;
  for (const std::string& name : options.backends) chosen.push_back(require_backend(name));
  return chosen;
}

namespace {

std::shared_ptr<const partition::CostTable> read_costs(const std::string& path, const codegen::NativeTarget& target,
                                                       int threads) {
  partition::CostTable table = partition::parse_cost_table(read_text(path, "table of costs"), path);
  if (table.cpu != target.cpu || table.threads != threads)
    throw_user_error(
        "{}: the costs are of {} thread(s) on {}, and the model is compiled for {} thread(s) on {}; measure "
        "again with headrace profile, or give --threads",
        path, table.threads, table.cpu, threads, target.cpu);
  return std::make_shared<const partition::CostTable>(std::move(table));
}

}  // namespace

Placement read_placement(const std::string& option, const std::string& name) {
  if (name == "order") return Placement::order;
  if (name == "cost") return Placement::cost;
  throw_user_error("{} is '{}'; it must be 'order' or 'cost'", option, name);
}

partition::PlacedModule place(const IRModule& canonical, const CompileOptions& options,
                              const codegen::NativeTarget& target) {
  partition::Backends backends = chosen_backends(options);
  if (options.placement == Placement::order || backends.empty()) return partition::place(canonical, backends);
  // The number of processors of this machine must not decide, so that the artifact's bytes do not depend on it.
  const auto cores = static_cast<int>(options.target->count("num-cores"));
  const int threads = options.threads > 0 ? options.threads : std::max(cores, 1);
  partition::CostModel model{.machine = machine_of(target), .threads = threads};
  if (!options.costs.empty()) model.measured = read_costs(options.costs, target, threads);
  return partition::place(canonical, partition::OpCosts(std::move(backends), std::move(model)));
}

Explanation explain(const Model& model, const CompileOptions& options) {
  check_options(options);
  register_all();
  Explanation explanation;
  const auto note = [&](const pass::PassNote& one) { explanation.notes.push_back(one); };
  const IRModule canonical = run_canonical_passes(model.module, make_relay_context(options, note));
  codegen::NativeTarget target;
  if (options.placement == Placement::cost) target = choose_target(codegen::NativeCompiler::load(), options.target);
  partition::PlacedModule placed = place(canonical, options, target);
  explanation.placement = std::move(placed.placement);
  explanation.regions = std::move(placed.regions);
  explanation.plan = std::move(placed.plan);
  explanation.costs = std::move(placed.costs);
  return explanation;
}

}  // namespace headrace::driver
