#include "driver/profile.h"

#include <algorithm>
#include <chrono>

#include "base/architecture.h"
#include "base/interrupt.h"
#include "driver/canonical.h"
#include "driver/check_options.h"
#include "driver/cost_cache.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "load/run.h"
#include "partition/placement/op_costs.h"
#include "relay/infer/infer_type.h"

namespace headrace::driver {

namespace {

bool has_sizes(const Type& type) {
  const std::vector<Type> leaves = leaves_of(type);
  return std::all_of(leaves.begin(), leaves.end(), [](const Type& leaf) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    return tensor != nullptr && as_shape(tensor->shape);
  });
}

bool can_run(const relay::CallNode& call) {
  return has_sizes(call.checked_type()) && std::all_of(call.args.begin(), call.args.end(),
                                                       [](const Expr& arg) { return has_sizes(arg->checked_type()); });
}

// Programs with the same inputs, which run in turns on zeros.
class TimedPrograms {
 public:
  explicit TimedPrograms(int threads) : threads_(threads) {}

  void add(CompiledModel compiled, const std::string& name) {
    auto executor = load::make_executor(open_compiled(std::move(compiled), name), artifact::kDefaultProgram,
                                        {.threads = threads_, .fallback = executors::Fallback::none});
    if (programs_.empty()) inputs_ = load::zeros_for(executor->inputs());
    std::vector<NDArray> outputs = load::zeros_for(executor->outputs());
    for (size_t i = 0; i < inputs_.size(); ++i)
      executors::throw_if_failed(executor->bind_input(i, inputs_[i].tensor()));
    for (size_t i = 0; i < outputs.size(); ++i)
      executors::throw_if_failed(executor->bind_output(i, outputs[i].tensor()));
    programs_.push_back({std::move(executor), std::move(outputs)});
  }

  // Returns the best seconds of each, in the order in which they were added.
  std::vector<double> run(int rounds) {
    std::vector<double> best(programs_.size());
    for (int round = 0; round <= rounds; ++round) {
      poll_interrupt();
      for (size_t i = 0; i < programs_.size(); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const executors::Status status = programs_[i].executor->run();
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        executors::throw_if_failed(status);
        if (round <= 1 || seconds.count() < best[i]) best[i] = seconds.count();  // the first round warms up
      }
    }
    return best;
  }

 private:
  struct TimedProgram {
    std::shared_ptr<executors::Executor> executor;
    std::vector<NDArray> outputs;
  };
  int threads_;
  std::vector<NDArray> inputs_;
  std::vector<TimedProgram> programs_;
};

// Returns the backend of each op, with its region: programs of the same rows are the same.
std::vector<std::string> rows_of(const artifact::Manifest& manifest) {
  std::vector<std::string> rows;
  for (const artifact::Program& program : manifest.programs) {
    if (program.name != artifact::kDefaultProgram) continue;
    for (const artifact::Placement& row : program.placement) rows.push_back(row.backend + " " + row.region);
  }
  return rows;
}

// Times plans and calls into a table.
class Profiler {
 public:
  Profiler(const CompileOptions& compile, partition::Backends backends, const ProfileOptions& options,
           partition::CostTable table)
      : base_(without_placement(compile)), backends_(std::move(backends)), options_(options), table_(std::move(table)) {
    base_.progress = {};
    base_.native_forms = false;  // no run falls back
  }
  const partition::CostTable& table() const { return table_; }

  bool are_plans_known(const std::string& hash) const {
    return options_.known != nullptr && has_plans(*options_.known, hash);
  }

  // Returns whether all that time_call() would time is known.
  bool is_known(const std::string& key, const relay::CallNode& call) const {
    if (options_.known == nullptr) return false;
    const auto is_in = [&](const std::string& way) { return options_.known->find(key, way).has_value(); };
    return (call.as_op() == nullptr || is_in(partition::kNative)) &&
           std::all_of(backends_.begin(), backends_.end(), [&](const auto& backend) {
             return is_in(std::string(backend->name())) || !partition::verdict_of(*backend, call).ok();
           });
  }

  // Equal plans are timed once: a backend alone that gets no region has the time of native code. All plans of a program
  // that marks regions by hand are left out, since placement does not know what these take.
  void time_plans(const Model& model, const std::string& hash) {
    TimedPrograms programs(base_.threads);
    std::map<std::vector<std::string>, size_t> known;
    std::vector<std::pair<partition::Backends, size_t>> plans;  // with the numbers of their programs
    for (const partition::Backends& list : partition::simple_plans(backends_)) {
      CompiledModel compiled = compile_to_memory(model, options_for(list));
      if (list.empty() && !compiled.report.manifest.regions.empty()) return;
      const auto [program, is_new] = known.try_emplace(rows_of(compiled.report.manifest), known.size());
      if (is_new) programs.add(std::move(compiled), "a profiled plan");
      plans.emplace_back(list, program->second);
    }
    const std::vector<double> seconds = programs.run(options_.rounds);
    for (const auto& [list, program] : plans)
      table_.plans[{hash, partition::plan_name(list)}] = {partition::plan_version(list), seconds[program]};
  }

  // Times the plan of least cost by all that is known now, if it is another one than those and was not tried before.
  // The fastest of those runs in turns with it, because the machine may be faster or slower now than it was for their
  // times.
  void try_plan_of_least_cost(const Model& model, const IRModule& canonical, const std::string& hash,
                              const cost::Machine& machine) {
    const auto known = std::make_shared<const partition::CostTable>(all_known());
    if (!has_plans(*known, hash)) return;
    const partition::CostModel costs{
        .machine = machine, .threads = base_.threads, .measured = known, .model = hash, .is_trial = true};
    const Placing placing = place_by_cost(canonical, {backends_, costs});
    const std::string& name = placing.decision->cost()->name;
    if (known->find_plan(hash, name) != nullptr) return;
    const partition::Backends fastest = fastest_plan(*known, hash);
    CompileOptions by_plan = options_for(backends_);
    by_plan.plan_text = partition::print_plan(make_model_plan(canonical, placing));
    TimedPrograms programs(base_.threads);
    programs.add(compile_to_memory(model, options_for(fastest)), "a profiled plan");
    programs.add(compile_to_memory(model, by_plan), "the plan of least cost");
    const std::vector<double> seconds = programs.run(options_.rounds);
    const double before = known->find_plan(hash, partition::plan_name(fastest))->seconds;
    table_.plans[{hash, name}] = {partition::plan_version(backends_), before * seconds[1] / seconds[0]};
  }

  // Times one call natively, and by each backend that takes it. A backend that refuses to compile it is left out.
  void time_call(const std::string& key, const relay::CallNode& call) {
    const IRModule module = relay::infer_type(make_module(partition::program_of_call(call)));
    TimedPrograms programs(base_.threads);
    std::vector<partition::Backends> ways;
    const auto add = [&](const partition::Backends& list) {
      CompiledModel compiled = compile_to_memory(make_model(module), options_for(list));
      if (!list.empty() && compiled.report.manifest.regions.empty()) return;
      programs.add(std::move(compiled), "a profiled call");
      ways.push_back(list);
    };
    if (call.as_op() != nullptr) add({});
    for (const auto& backend : backends_) {
      if (partition::verdict_of(*backend, call).ok()) add({backend});
    }
    const std::vector<double> seconds = programs.run(options_.rounds);
    for (size_t i = 0; i < ways.size(); ++i)
      table_.costs[{key, partition::plan_name(ways[i])}] = {partition::plan_version(ways[i]), seconds[i]};
  }

 private:
  bool has_plans(const partition::CostTable& table, const std::string& hash) const {
    const std::vector<partition::Backends> plans = partition::simple_plans(backends_);
    return std::all_of(plans.begin(), plans.end(),
                       [&](const auto& list) { return table.find_plan(hash, partition::plan_name(list)) != nullptr; });
  }

  partition::Backends fastest_plan(const partition::CostTable& table, const std::string& hash) const {
    const std::vector<partition::Backends> plans = partition::simple_plans(backends_);
    const auto seconds = [&](const auto& list) { return table.find_plan(hash, partition::plan_name(list))->seconds; };
    return *std::min_element(plans.begin(), plans.end(),
                             [&](const auto& a, const auto& b) { return seconds(a) < seconds(b); });
  }

  // Returns what is measured now and what was known before.
  partition::CostTable all_known() const {
    partition::CostTable all = table_;
    if (options_.known == nullptr) return all;
    all.costs.insert(options_.known->costs.begin(), options_.known->costs.end());
    all.plans.insert(options_.known->plans.begin(), options_.known->plans.end());
    return all;
  }

  CompileOptions options_for(const partition::Backends& list) const {
    CompileOptions options = base_;
    options.backends.clear();
    for (const auto& backend : list) options.backends.emplace_back(backend->name());
    drop_unused_options(options, list);
    return options;
  }

  CompileOptions base_;
  partition::Backends backends_;
  const ProfileOptions& options_;
  partition::CostTable table_;
};

// Throws UserError for a target whose code this machine cannot run.
void check_measured_here(const codegen::NativeTarget& target) {
  if (!is_for_another_architecture(target.triple)) return;
  throw_user_error(
      "costs are measured by running each op, and the target {} is not of this machine, which is {}; profile "
      "on a machine of the target's architecture",
      target.triple, kHostArchitecture);
}

// Returns each different call of the splits that placement tries, by its key.
std::map<std::string, const relay::CallNode*> calls_of(const std::vector<IRModule>& splits) {
  std::map<std::string, const relay::CallNode*> calls;
  for (const IRModule& split : splits) {
    partition::for_each_placeable(split, [&](const relay::CallNode& call) {
      if (can_run(call)) calls.emplace(partition::cost_key(call), &call);
    });
  }
  return calls;
}

}  // namespace

partition::CostTable profile(const Model& model, const CompileOptions& compile, const ProfileOptions& options) {
  check_options(compile);
  register_all();
  const codegen::NativeTarget target = choose_target(codegen::NativeCompiler::load(), compile.target);
  check_measured_here(target);
  CompileOptions timed = compile;
  timed.threads = threads_of(compile);
  const partition::Backends backends = possible_backends(compile);
  const IRModule canonical = run_canonical_passes(model.module, make_relay_context(compile, [](const auto&) {}));
  const std::vector<IRModule> splits = partition::splits_of(canonical, backends);
  auto calls = calls_of(splits);
  Profiler profiler(timed, backends, options, {.cpu = target.cpu, .threads = timed.threads, .costs = {}});
  std::erase_if(calls, [&](const auto& one) { return profiler.is_known(one.first, *one.second); });
  size_t index = 0;
  const auto report = [&](const std::string& what) {
    if (options.progress) options.progress(what, index++, calls.size() + 2);
  };
  report("whole plans");
  const std::string hash = model_hash(canonical);
  if (!hash.empty() && !profiler.are_plans_known(hash)) profiler.time_plans(model, hash);
  for (const auto& [key, call] : calls) {
    report(partition::kind_of(*call));
    profiler.time_call(key, *call);
  }
  report("the plan of least cost");
  if (!backends.empty()) profiler.try_plan_of_least_cost(model, canonical, hash, machine_of(target));
  return profiler.table();
}

KeptCosts profile_into_cache(const Model& model, const CompileOptions& compile, ProfileOptions options, bool again) {
  register_all();
  const std::string cpu = choose_target(codegen::NativeCompiler::load(), compile.target).cpu;
  const int64_t threads = threads_of(compile);
  partition::CostTable kept = kept_costs(cpu, threads);
  partition::drop_other_versions(kept, possible_backends(compile));
  if (!again) options.known = &kept;
  const partition::CostTable table = profile(model, compile, options);
  const size_t num_kept = keep_costs(table);
  return {cost_cache_path(cpu, threads), table.costs.size(), num_kept};
}

}  // namespace headrace::driver
