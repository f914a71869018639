#include "tools/headrace/region_check.h"

#include <algorithm>
#include <map>

#include "driver/explain.h"
#include "driver/placing.h"
#include "interp/interp.h"
#include "load/run.h"
#include "ops/loops/element.h"
#include "partition/compiler_functions.h"
#include "passes/forms/to_graph_normal_form.h"
#include "relay/infer/infer_type.h"
#include "relay/regions.h"
#include "relay/visit.h"
#include "tools/headrace/shown_text.h"

namespace headrace::tools {

namespace {

// The rounding of native code may be half that of a backend, which adds in another order.
constexpr double kTimesNative = 2;

bool is_always_computed(const Expr& expr) {
  return !expr.is<relay::FunctionNode>() && !expr.is<relay::IfNode>() && !expr.is<relay::MatchNode>() &&
         !expr.is<relay::LetNode>();
}

bool is_right(const std::vector<OutputComparison>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const OutputComparison& one) {
    return one.is_near_float64() || (one.peer_error && one.error <= kTimesNative * *one.peer_error);
  });
}

// A call of a region, with what the reference computes for it.
struct RegionCall {
  std::string name, backend;
  relay::Call call;
  std::vector<NDArray> reference = {};
};

// The program of some calls of regions alone: its parameters are the tensors that the calls take.
struct CallsProgram {
  driver::Model model;
  std::vector<NDArray> inputs;
};

class RegionChecker {
 public:
  RegionChecker(const driver::Model& model, const RegionCheckOptions& options) : model_(model), options_(options) {
    const IRModule placed = driver::partition_module(model, options.compile);
    module_ = relay::infer_type(passes::to_graph_normal_form(partition::outline_compiler_functions(placed)));
  }

  RegionCheck check(const std::vector<NDArray>& inputs) {
    find_calls();
    RegionCheck result;
    if (!calls_.empty()) {
      evaluate(inputs);
      compare(result);
    }
    return result;
  }

 private:
  void find_calls() {
    const auto main = module_->lookup("main").cast<relay::FunctionNode>();
    relay::post_order(main->body, &is_always_computed, [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      const relay::Function region = call == nullptr ? relay::Function() : relay::region_of(*call, module_);
      if (!region) return;
      const std::string name = relay::region_name(*call, *region);
      for (const artifact::Region& compiled : options_.regions) {
        if (compiled.name == name)
          calls_.push_back({.name = name, .backend = compiled.backend, .call = expr.cast<relay::CallNode>()});
      }
    });
  }

  // Computes the values that enter and leave the regions, all in one run.
  void evaluate(const std::vector<NDArray>& inputs) {
    Array<Expr> wanted;
    std::vector<Expr> args;
    for (const RegionCall& one : calls_) {
      for (const Expr& arg : one.call->args) {
        if (arg.is<relay::ConstantNode>() || !values_.emplace(arg.get(), std::vector<NDArray>()).second) continue;
        args.push_back(arg);
        wanted.push_back(arg);
      }
    }
    for (const RegionCall& one : calls_) wanted.push_back(one.call);
    const auto main = module_->lookup("main").cast<relay::FunctionNode>();
    const IRModule module = with_main(main->params, relay::make_tuple(wanted));
    const std::vector<NDArray> all = interp::run_main(module, inputs, {.precision = interp::Precision::float64});
    auto next = all.begin();
    const auto take = [&](const Expr& value) {
      const auto first = next;
      next += std::ssize(leaves_of(value->checked_type()));
      return std::vector<NDArray>(first, next);
    };
    for (const Expr& arg : args) values_[arg.get()] = take(arg);
    for (RegionCall& one : calls_) one.reference = take(one.call);
  }

  IRModule with_main(const Array<relay::Var>& params, const Expr& body) const {
    const IRModule changed = make_module();
    changed->import_from(*module_);
    changed->add_function(changed->get_global_var("main"), relay::make_function(params, body), true);
    return relay::infer_type(changed);
  }

  // Adds parameters for the tensors of a type, and returns the value that they make together.
  static Expr add_parameters(const Type& type, Array<relay::Var>& params) {
    if (const auto* tuple = type.as<TupleTypeNode>()) {
      Array<Expr> items;
      for (const Type& item : tuple->items) items.push_back(add_parameters(item, params));
      return relay::make_tuple(items);
    }
    params.push_back(relay::make_var(fmt::format("value{}", params.size()), type));
    return params[params.size() - 1];
  }

  CallsProgram program_of(std::span<const RegionCall> calls) const {
    Array<relay::Var> params;
    Array<Expr> results;
    std::map<const Object*, Expr> known;
    CallsProgram program;
    for (const RegionCall& one : calls) {
      Array<Expr> args;
      for (const Expr& arg : one.call->args) {
        if (arg.is<relay::ConstantNode>()) {
          args.push_back(arg);
          continue;
        }
        Expr& value = known[arg.get()];
        if (!value) {
          value = add_parameters(arg->checked_type(), params);
          const std::vector<Type> types = leaves_of(arg->checked_type());
          const std::vector<NDArray>& tensors = values_.at(arg.get());
          for (size_t i = 0; i < types.size(); ++i)
            program.inputs.push_back(ops::as_dtype(tensors[i], types[i].as<TensorTypeNode>()->dtype));
        }
        args.push_back(value);
      }
      results.push_back(relay::make_call(one.call->op, args, one.call->attrs, {}, one.call->span));
    }
    program.model = driver::make_model(with_main(params, relay::make_tuple(results)));
    program.model.modules = model_.modules;
    return program;
  }

  // Returns the options of a compile of regions that the program marks.
  driver::CompileOptions marked_options() const {
    driver::CompileOptions options = driver::without_placement(options_.compile);
    options.backends.clear();
    options.progress = {};
    partition::Backends used;
    for (const RegionCall& one : calls_) {
      if (auto backend = partition::find_backend(one.backend)) used.push_back(std::move(backend));
    }
    driver::drop_unused_options(options, used);
    return options;
  }

  std::vector<NDArray> run_natively(CallsProgram program) const {
    driver::CompileOptions options = marked_options();
    options.backend_options.clear();
    program.model.module = inlined(program.model.module);
    return load::run(*make_compiled(program.model, options, options_.threads), program.inputs);
  }

  // Returns the program with the bodies of its regions in place of their calls.
  static IRModule inlined(const IRModule& module) {
    std::vector<std::string> names;
    const auto main = module->lookup("main").cast<relay::FunctionNode>();
    relay::post_order(main->body, &is_always_computed, [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      const auto* global = call == nullptr ? nullptr : call->op.as<GlobalVarNode>();
      if (global != nullptr && relay::region_of(*call, module) &&
          std::find(names.begin(), names.end(), global->name_hint) == names.end())
        names.push_back(global->name_hint);
    });
    return relay::infer_type(partition::inline_compiler_functions(module, names));
  }

  void compare(RegionCheck& result) {
    const CallsProgram program = program_of(calls_);
    const auto executor = make_compiled(program.model, marked_options(), options_.threads);
    const std::vector<NDArray> ours = load::run(*executor, program.inputs);
    std::map<std::string, std::string> fallen;
    for (const executors::FallbackEvent& event : executor->fallbacks()) fallen.emplace(event.region, event.message);
    std::optional<std::vector<NDArray>> native;
    size_t offset = 0;
    for (const RegionCall& one : calls_) {
      const auto part = [&](const std::vector<NDArray>& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(offset);
        return std::vector<NDArray>(begin, begin + std::ssize(one.reference));
      };
      OutputSets sets{.names = std::vector<std::string>(one.reference.size(), one.name),
                      .ours = part(ours),
                      .reference = one.reference,
                      .peer = {}};
      if (const auto event = fallen.find(one.name); event != fallen.end()) {
        ComparedRegion row;
        row.note = "it fell back to native code: " + event->second;
        row.is_right = false;
        if (result.guilty_region.empty()) result.guilty_region = one.name;
        add(result, one, std::move(row));
      } else {
        compare_call(result, one, sets, [&] {
          if (!native) native = run_natively(program);
          return part(*native);
        });
      }
      offset += one.reference.size();
    }
  }

  // `native`: returns the region's results of native code.
  template <typename F>
  void compare_call(RegionCheck& result, const RegionCall& one, OutputSets& sets, F&& native) {
    ComparedRegion row;
    try {
      std::vector<OutputComparison> outputs = compare_outputs(sets, options_.tolerance);
      if (!is_right(outputs)) {
        sets.peer = native();
        outputs = compare_outputs(sets, options_.tolerance);
      }
      row.worst = worst_of_region(outputs);
      row.is_right = is_right(outputs);
    } catch (const UserError& error) {
      row.note = error.message();
    }
    add(result, one, row);
    if (row.is_right || !result.guilty_region.empty()) return;
    result.guilty_region = one.name;
    if (options_.bisects) result.bisection = bisect_region(one, sets);
  }

  static OutputComparison worst_of_region(const std::vector<OutputComparison>& outputs) {
    const auto share = [](const OutputComparison& one) {
      return one.limit > 0 ? one.error / one.limit : one.error > 0 ? INFINITY : 0.0;
    };
    return *std::max_element(outputs.begin(), outputs.end(),
                             [&](const auto& a, const auto& b) { return share(a) < share(b); });
  }

  // A region that is called more than once has one row, that of its worst call.
  static void add(RegionCheck& result, const RegionCall& one, ComparedRegion row) {
    row.name = one.name;
    row.backend = one.backend;
    for (ComparedRegion& known : result.regions) {
      if (known.name != one.name) continue;
      const bool is_worse = !known.worst || (row.worst && row.worst->error > known.worst->error);
      if (known.is_right && (!row.is_right || is_worse)) known = std::move(row);
      return;
    }
    result.regions.push_back(std::move(row));
  }

  Bisection bisect_region(const RegionCall& one, const OutputSets& sets) const {
    CallsProgram program = program_of({&one, 1});
    program.model.module = inlined(program.model.module);
    driver::CompileOptions options = marked_options();
    options.backends = {one.backend};
    options.progress = options_.compile.progress;
    driver::drop_unused_options(options, driver::chosen_backends(options));
    return find_guilty_op({.model = program.model,
                           .options = std::move(options),
                           .inputs = program.inputs,
                           .sets = sets,
                           .tolerance = options_.tolerance,
                           .threads = options_.threads,
                           .is_right = &is_right});
  }

  const driver::Model& model_;
  const RegionCheckOptions& options_;
  IRModule module_;  // with a function for each region
  std::vector<RegionCall> calls_;
  std::map<const Object*, std::vector<NDArray>> values_;  // the tensors of the calls' arguments, in order
};

}  // namespace

RegionCheck check_regions(const driver::Model& model, const std::vector<NDArray>& inputs,
                          const RegionCheckOptions& options) {
  return RegionChecker(model, options).check(inputs);
}

std::string explain(const RegionCheck& check) {
  if (check.ok()) return "";
  for (const ComparedRegion& one : check.regions) {
    if (one.name == check.guilty_region && !one.worst)
      return fmt::format("the first region that failed is {}: {} does not run it", shown(one.name), shown(one.backend));
    if (one.name == check.guilty_region)
      return fmt::format(
          "the first region that is wrong is {}, computed by {}: on its inputs in the reference its "
          "error is {:.3g}, above the limit {:.3g}",
          shown(one.name), shown(one.backend), one.worst->error, one.worst->limit);
  }
  return "";
}

Array<Value> regions_report(const RegionCheck& check) {
  Array<Value> list;
  for (const ComparedRegion& one : check.regions)
    list.push_back(Value(Report{{"name", Value(one.name)},
                                {"backend", Value(one.backend)},
                                {"error", one.worst ? Value(one.worst->error) : Value()},
                                {"limit", one.worst ? Value(one.worst->limit) : Value()},
                                {"ok", Value(one.is_right)},
                                {"note", one.note.empty() ? Value() : Value(one.note)}}));
  return list;
}

}  // namespace headrace::tools
