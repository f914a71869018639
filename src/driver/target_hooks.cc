#include "driver/target_hooks.h"

#include "driver/compile_regions.h"
#include "object/repr.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "tir/verify.h"
#include "tir/workspace.h"

namespace headrace::driver {

namespace {

using partition::RegionSource;

constexpr const char* kExternalMods = "external_mods";  // the attribute of Relay's name

class HookRunner {
 public:
  HookRunner(const std::string& backend, std::span<const RegionSource> regions, const Map<std::string, Value>& options)
      : backend_(backend), regions_(regions), options_(options) {}

  std::vector<HookedRegion> run(const IRModule& program) {
    made_ = call_relay_to_tir(all_regions(program));
    modules_ = external_modules();
    std::vector<HookedRegion> hooked;
    for (const RegionSource& region : regions_) hooked.push_back(hooked_region(region));
    if (const PackedFunc hook = find_kind_hook(backend_, kTirToRuntime)) call_tir_to_runtime(hook, hooked);
    return hooked;
  }

 private:
  IRModule all_regions(const IRModule& program) const {
    IRModule all = snapshot(program);
    all->set_functions({});
    for (const RegionSource& region : regions_) {
      for (const auto& [var, function] : region.module->functions()) all->add_function(var, function, true);
    }
    return all;
  }

  // Types are inferred again, because a hook may return functions without them.
  IRModule call_relay_to_tir(const IRModule& regions) const {
    const Value made = find_kind_hook(backend_, kRelayToTir)(regions);
    if (made.as_node<IRModuleNode>() == nullptr)
      throw_user_error("the hook {} of the target kind '{}' returned {}; it must return an IRModule", kRelayToTir,
                       backend_, repr(made));
    return relay::infer_type(made.as<IRModule>());
  }

  // The modules that the hook returned beside functions.
  std::vector<runtime::Module> external_modules() const {
    const auto given = made_->attrs.get(kExternalMods);
    if (!given) return {};
    const auto wrong = [&](const Value& value) {
      throw_user_error(
          "the hook {} of the target kind '{}' returned a module whose attribute '{}' has {}; it is a "
          "list of runtime::Modules",
          kRelayToTir, backend_, kExternalMods, repr(value));
    };
    if (given->as_node<ArrayObj>() == nullptr) wrong(*given);
    std::vector<runtime::Module> modules;
    for (const Value& value : given->as<Array<Value>>()) {
      if (!value.is<runtime::Module>()) wrong(value);
      modules.push_back(value.as<runtime::Module>());
    }
    return modules;
  }

  HookedRegion hooked_region(const RegionSource& region) const {
    for (const runtime::Module& module : modules_) {
      if (module.ImplementsFunction(region.name, true)) return {.source = {}, .kernel = {}, .module = module};
    }
    if (!made_->find_global_var(region.name))
      throw_at(region.function->span, "compile",
               fmt::format("the hook {} of the target kind '{}' returned a module without the function '{}'",
                           kRelayToTir, backend_, region.name));
    const BaseFunc function = made_->lookup(region.name);
    if (function.is<tir::PrimFuncNode>())
      return {.source = {}, .kernel = checked(function.cast<tir::PrimFuncNode>(), region), .module = {}};
    const auto relay = function.cast<relay::FunctionNode>();
    return {
        .source =
            RegionSource{.name = region.name, .function = relay, .module = closed_module(region.name, relay, made_)},
        .kernel = {},
        .module = {}};
  }

  [[noreturn]] void fail(const RegionSource& region, const std::string& what) const {
    throw_at(region.function->span, "compile",
             fmt::format("the PrimFunc that the hook {} of the target kind '{}' made of '{}' {}", kRelayToTir, backend_,
                         region.name, what));
  }

  static std::vector<Type> tensors_of(const relay::FunctionNode& function) {
    std::vector<Type> tensors;
    const auto add = [&](const Type& type) {
      for (const Type& leaf : leaves_of(type)) tensors.push_back(leaf);
    };
    for (const relay::Var& param : function.params) add(param->checked_type());
    add(function.body->checked_type());
    return tensors;
  }

  // Returns the PrimFunc under the region's name, with its workspace laid out.
  tir::PrimFunc checked(const tir::PrimFunc& given, const RegionSource& region) const {
    const std::vector<Type> tensors = tensors_of(*region.function);
    if (given->params.size() != tensors.size())
      fail(region, fmt::format("has {} buffers; it takes {}, its tensors and then its results", given->params.size(),
                               tensors.size()));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Buffer& buffer = given->params[i];
      const auto* tensor = tensors[i].as<TensorTypeNode>();
      if (buffer->dtype != tensor->dtype || as_shape(buffer->shape) != as_shape(tensor->shape))
        fail(region, fmt::format("has a buffer {} of another shape or dtype than its tensor {}, {}", buffer->name, i,
                                 repr(Value(tensors[i]))));
    }
    DictAttrs attrs = given->attrs;
    attrs.set(std::string(relay::kGlobalSymbol), Value(region.name));
    const auto num_outputs = static_cast<int64_t>(leaves_of(region.function->body->checked_type()).size());
    const tir::PrimFunc named = tir::with_workspace(copy_with(*given, [&](tir::PrimFuncNode& copy) {
      copy.attrs = attrs;
      copy.num_outputs = num_outputs;
    }));
    if (const auto breaches = tir::find_breaches(named); !breaches.empty())
      fail(region, "breaks a rule: " + breaches[0]);
    return named;
  }

  // The kind's target has those options that it knows; others are for relay.ext.NAME.
  Target target() const {
    Map<std::string, Value> own;
    for (const auto& [name, value] : options_) {
      if (get_target_kind(backend_)->find_option(name) != nullptr) own.set(name, value);
    }
    return make_target(backend_, own);
  }

  void call_tir_to_runtime(const PackedFunc& hook, std::vector<HookedRegion>& hooked) const {
    const IRModule kernels = make_module();
    for (size_t i = 0; i < hooked.size(); ++i) {
      if (hooked[i].kernel) kernels->add_function(made_->get_global_var(regions_[i].name), hooked[i].kernel);
    }
    if (kernels->functions().empty()) return;
    const Value made = hook(kernels, target());
    if (made.is_none() || !made.is<runtime::Module>())
      throw_user_error("the hook {} of the target kind '{}' returned {}; it must return a runtime::Module",
                       kTirToRuntime, backend_, repr(made));
    for (HookedRegion& region : hooked) {
      if (!region.kernel) continue;
      region.kernel = {};
      region.module = made.as<runtime::Module>();
    }
  }

  const std::string& backend_;
  std::span<const RegionSource> regions_;
  const Map<std::string, Value>& options_;
  IRModule made_;                         // the module that RelayToTIR returned
  std::vector<runtime::Module> modules_;  // those beside its functions
};

}  // namespace

bool has_hooks(const std::string& backend) { return static_cast<bool>(find_kind_hook(backend, kRelayToTir)); }

std::vector<HookedRegion> run_hooks(const std::string& backend, std::span<const RegionSource> regions,
                                    const IRModule& program, const Map<std::string, Value>& options) {
  return HookRunner(backend, regions, options).run(program);
}

}  // namespace headrace::driver
