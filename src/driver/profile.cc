#include "driver/profile.h"

#include <algorithm>
#include <chrono>

#include "base/architecture.h"
#include "base/interrupt.h"
#include "driver/canonical.h"
#include "driver/check_options.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "load/run.h"
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

// One call, and the ways to compute it.
class CallTimer {
 public:
  CallTimer(const relay::CallNode& call, const CompileOptions& options)
      : module_(relay::infer_type(make_module(partition::program_of_call(call)))), options_(options) {
    options_.placement = Placement::order;
    options_.costs = {};
    options_.plan = {};
    options_.plan_text.reset();
    options_.overrides = {};
    options_.progress = {};
  }

  // Adds native code for an empty name. A backend that refuses the call is left out.
  void add(const std::string& backend) {
    options_.backends.clear();
    if (!backend.empty()) options_.backends.push_back(backend);
    CompiledModel compiled = compile_to_memory(make_model(module_), options_);
    if (!backend.empty() && compiled.report.manifest.regions.empty()) return;
    auto executor =
        load::make_executor(open_compiled(std::move(compiled), "a profiled call"), artifact::kDefaultProgram,
                            {.threads = options_.threads, .fallback = executors::Fallback::none});
    if (ways_.empty()) inputs_ = load::zeros_for(executor->inputs());
    ways_.push_back({backend, std::move(executor), 0});
  }

  // Calls `keep` with each way and its best seconds.
  template <typename Keep>
  void run(int rounds, Keep&& keep) {
    for (int round = 0; round <= rounds; ++round) {
      poll_interrupt();
      for (Way& way : ways_) {
        const auto begin = std::chrono::steady_clock::now();
        load::run(*way.executor, inputs_);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        if (round <= 1 || seconds.count() < way.best) way.best = seconds.count();  // the first round warms up
      }
    }
    for (const Way& way : ways_) keep(way.backend, way.best);
  }

 private:
  struct Way {
    std::string backend;
    std::shared_ptr<executors::Executor> executor;
    double best;
  };
  IRModule module_;
  CompileOptions options_;
  std::vector<NDArray> inputs_;
  std::vector<Way> ways_;
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
  CompileOptions alone = compile;
  alone.threads = std::max(compile.threads, 1);
  const partition::Backends backends = chosen_backends(compile);
  const IRModule canonical = run_canonical_passes(model.module, make_relay_context(compile, [](const auto&) {}));
  const std::vector<IRModule> splits = partition::splits_of(canonical, backends);
  const auto calls = calls_of(splits);
  partition::CostTable table{.cpu = target.cpu, .threads = alone.threads, .costs = {}};
  size_t index = 0;
  for (const auto& [key, call] : calls) {
    if (options.progress) options.progress(index++, calls.size());
    CallTimer timer(*call, alone);
    if (call->as_op() != nullptr) timer.add("");
    for (const auto& backend : backends) {
      if (partition::verdict_of(*backend, *call).ok()) timer.add(std::string(backend->name()));
    }
    timer.run(options.rounds, [&](const std::string& backend, double seconds) {
      const std::string label = backend.empty() ? partition::kNative : backend;
      table.costs.emplace(
          std::pair(key, label),
          partition::MeasuredCost{backend.empty() ? HEADRACE_VERSION : partition::find_backend(backend)->version(),
                                  seconds});
    });
  }
  return table;
}

}  // namespace headrace::driver
