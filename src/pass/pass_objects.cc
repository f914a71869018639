#include "pass/pass_objects.h"

#include "pass/known_passes.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/result_types.h"
#include "relay/unique_binders.h"
#include "tir/stmt.h"

namespace headrace::pass {

void PassInfoObj::fields(FieldList<PassInfoObj>& f) {
  const Value none = Array<Value>();
  f.field<&PassInfoObj::opt_level>("opt_level", {.doc = "it runs in contexts of at least this level"})
      .field<&PassInfoObj::name>("name")
      .field<&PassInfoObj::required>("required", {.doc = "passes that run before it"})
      .field<&PassInfoObj::traceable>(
          "traceable", {.default_value = true, .has_default = true, .doc = "whether a context's trace is told of it"})
      .field<&PassInfoObj::summary>("summary", {.default_value = "", .has_default = true, .doc = "what it does"})
      .field<&PassInfoObj::aliases>("aliases", {.default_value = none, .has_default = true, .doc = "other names"})
      .field<&PassInfoObj::options>("options", {.default_value = none, .has_default = true, .doc = "in a call's order"})
      .field<&PassInfoObj::runs_after>(
          "runs_after", {.default_value = none, .has_default = true, .doc = "passes that it comes after in a sequence"})
      .field<&PassInfoObj::undoes>(
          "undoes", {.default_value = none, .has_default = true, .doc = "passes whose work it takes back"});
}

void PassObj::fields(FieldList<PassObj>& f) { f.field<&PassObj::info>("info"); }
void ModulePassObj::fields(FieldList<ModulePassObj>&) {}
void FunctionPassObj::fields(FieldList<FunctionPassObj>&) {}
void PrimFuncPassObj::fields(FieldList<PrimFuncPassObj>&) {}
void SequentialObj::fields(FieldList<SequentialObj>& f) { f.field<&SequentialObj::passes>("passes"); }

Ref<PassInfoObj> make_pass_info(const PassInfo& info) {
  Ref<PassInfoObj> object = make_object<PassInfoObj>();
  object->opt_level = info.opt_level;
  object->name = info.name;
  object->required = Array<std::string>(info.required);
  object->summary = info.summary;
  object->aliases = Array<std::string>(info.aliases);
  for (const ConfigKey& option : info.options) object->options.push_back(option.name);
  object->runs_after = Array<std::string>(info.runs_after);
  object->undoes = Array<std::string>(info.undoes);
  object->traceable = info.traceable;
  return object;
}

// Returns an option of a pass as declared; with its name alone when it is not declared.
static ConfigKey declared_option(const std::string& pass, const std::string& option) {
  const ConfigKey* key = find_config_key(option_key(pass, option));
  ConfigKey own = key != nullptr ? *key : ConfigKey{};
  own.name = option;
  return own;
}

PassInfo to_info(const PassInfoObj& info) {
  std::vector<ConfigKey> options;
  for (const std::string& option : info.options) options.push_back(declared_option(info.name, option));
  return {.name = info.name,
          .opt_level = static_cast<int32_t>(info.opt_level),
          .required = info.required.to_vector(),
          .summary = info.summary,
          .aliases = info.aliases.to_vector(),
          .options = std::move(options),
          .runs_after = info.runs_after.to_vector(),
          .undoes = info.undoes.to_vector(),
          .traceable = info.traceable};
}

namespace {

template <typename T>
Ref<T> make_named(Ref<PassInfoObj> info, std::function<IRModule(const IRModule&, const PassContext&)> run) {
  make_known(to_info(*info));
  Ref<T> pass = make_object<T>();
  pass->info = std::move(info);
  pass->run = std::move(run);
  return pass;
}

// Finds a pass of the registry, in any spelling.
PassRef find_registered(const std::string& name) {
  constexpr std::string_view kPrefix = "relay._transform.";
  for (const std::string& known : global_names()) {
    if (known.starts_with(kPrefix) && same_pass_name(known.substr(kPrefix.size()), name))
      return get_global(known)().as<PassRef>();
  }
  return {};
}

// Converts a pass and its requirements; `asked` are the passes whose requirements are being converted.
Pass to_pass(const PassObj& pass, std::vector<std::string>& asked) {
  if (!pass.run) throw_user_error("pass '{}' was made from its fields and has no code", pass.info->name);
  Pass result{to_info(*pass.info), pass.run};
  asked.push_back(pass.info->name);
  for (const std::string& name : pass.info->required) {
    if (std::any_of(asked.begin(), asked.end(), [&](const auto& open) { return same_pass_name(open, name); }))
      throw_user_error("pass '{}' requires '{}', which requires it", pass.info->name, name);
    const PassRef required = find_registered(name);
    if (!required) throw_user_error("pass '{}' requires '{}', which is not a pass", pass.info->name, name);
    result.prerequisites.push_back(to_pass(*required, asked));
  }
  asked.pop_back();
  return result;
}

std::vector<Pass> to_list(const Array<PassRef>& passes) {
  std::vector<Pass> result;
  std::vector<std::string> asked;
  for (const PassRef& pass : passes) result.push_back(to_pass(*pass, asked));
  return result;
}

bool takes(const BaseFunc& function, bool is_prim) {
  if (is_prim) return function.is<tir::PrimFuncNode>();
  const auto* relay_function = function.as<relay::FunctionNode>();
  return relay_function != nullptr && !relay::is_left_alone(*relay_function);
}

}  // namespace

PassRef make_pass(const Pass& pass) { return make_named<ModulePassObj>(make_pass_info(pass.info), pass.run); }

PassRef make_sequential(Array<PassRef> passes, Ref<PassInfoObj> info) {
  Ref<SequentialObj> pass =
      make_named<SequentialObj>(std::move(info), [passes](const IRModule& module, const PassContext& context) {
        return run_passes(to_list(passes), module, context);
      });
  pass->passes = std::move(passes);
  return pass;
}

PassRef make_module_pass(PackedFunc body, Ref<PassInfoObj> info) {
  const std::string name = info->name;
  return make_named<ModulePassObj>(std::move(info), [body, name](const IRModule& module, const PassContext& context) {
    const Value result = body(module, to_object(context));
    if (!result.is<IRModule>() || result.is_none())
      throw_user_error("module pass '{}' must give an IRModule, got {}", name, kind_name(result.raw()));
    return relay::unique_binders(result.as<IRModule>());
  });
}

PassRef make_function_pass(PackedFunc body, Ref<PassInfoObj> info, bool is_prim) {
  const std::string name = info->name;
  const auto run = [body, name, is_prim](const IRModule& module, const PassContext& context) {
    IRModule result;
    for (const auto& [var, function] : module->functions()) {
      if (!takes(function, is_prim)) continue;
      const Value changed = body(function, module, to_object(context));
      if (!changed.is<BaseFunc>() || changed.is_none() || !takes(changed.as<BaseFunc>(), is_prim))
        throw_user_error("function pass '{}' must give a function of its kind, got {}", name, kind_name(changed.raw()));
      if (changed.object() == function.object()) continue;
      if (!result) result = snapshot(module);
      result->add_function(var, changed.as<BaseFunc>(), true);
    }
    if (!result) return module;
    if (is_prim) return relay::unique_binders(result);
    // As Relay's function passes, it ends in InferType.
    return relay::with_result_types(relay::infer_type(relay::unique_binders(result)));
  };
  if (is_prim) return make_named<PrimFuncPassObj>(std::move(info), run);
  return make_named<FunctionPassObj>(std::move(info), run);
}

IRModule run_pass(const PassRef& pass, const IRModule& module, const PassContextRef& context) {
  PassContext inner = to_context(context);
  const PassInfo info = to_info(*pass->info);
  for (const auto& instrument : inner.instruments) {
    if (!instrument->should_run(module, info)) return module;
  }
  check_pass_names(inner.disabled_pass, NamedTo::disable);
  check_pass_names(inner.required_pass, NamedTo::require);
  inner.required_pass.push_back(info.name);
  return run_passes(to_list({pass}), module, inner);
}

}  // namespace headrace::pass
