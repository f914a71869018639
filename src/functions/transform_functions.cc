#include "driver/all_passes.h"
#include "driver/output_file.h"
#include "functions/register_functions.h"
#include "pass/config.h"
#include "pass/instruments.h"
#include "pass/known_passes.h"
#include "pass/pass_objects.h"
#include "pass/round_trip.h"
#include "passes/pipeline.h"
#include "passes/simplify/legalize.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/result_types.h"
#include "relay/verify.h"

namespace headrace::functions {

namespace {

using namespace pass;
using Options = Map<std::string, Value>;

bool is_option(const Pass& pass, std::string_view name) {
  return std::any_of(pass.info.options.begin(), pass.info.options.end(),
                     [&](const ConfigKey& option) { return option.name == name; });
}

// Reads a pass's options from the arguments of a call. The arguments are either the options in their declared order,
// with None for a default, or one map from names to values.
Options options_of(const Pass& pass, const Args& args) {
  const auto count = static_cast<size_t>(args.size());
  if (count == 1 && matches_item<Options>(args[0])) {
    const auto by_name = args.at<Options>(0);
    const auto is_known = [&](const auto& entry) { return is_option(pass, entry.first); };
    if (pass.info.options.empty() || std::all_of(by_name.begin(), by_name.end(), is_known)) return by_name;
  }
  if (count > pass.info.options.size())
    throw_user_error("pass {} takes {} arguments, got {}", pass.info.name, pass.info.options.size(), count);
  Options options;
  for (size_t i = 0; i < count; ++i) {
    const Value value = args.at<Value>(static_cast<int32_t>(i));
    if (!value.is_none()) options.set(pass.info.options[i].name, value);
  }
  return options;
}

// Returns the pass with its own options set. The options apply to runs of this pass only.
PassRef make_with_options(const Pass& pass, const Options& options) {
  if (options.empty()) return make_pass(pass);
  Options config;
  for (const auto& [option, value] : options) {
    const std::string key = option_key(pass.info.name, option);
    if (find_config_key(key) == nullptr) throw_user_error("pass {} takes no argument '{}'", pass.info.name, option);
    config.set(key, value);
  }
  check_config(config);
  Pass with = pass;
  with.run = [run = pass.run, config](const IRModule& module, const PassContext& context) {
    PassContext inner = context;
    for (const auto& [key, value] : config) inner.config.set(key, value);
    return run(module, inner);
  };
  return make_pass(with);
}

// Returns the pass as users of Relay call it by its name. Relay's function passes end in InferType, so that the
// functions that they give have the types of their results, and their laws ask for no level.
Pass as_in_relay(Pass pass) {
  if (pass.info.relay_typing == pass::RelayTyping::none) return pass;
  if (pass.info.relay_typing == pass::RelayTyping::around) pass.info.required = {"InferType"};
  const int32_t least_level = pass.info.relay_level;
  pass.run = [run = pass.run, least_level](const IRModule& module, const PassContext& context) {
    PassContext inner = context;
    inner.opt_level = std::max(context.opt_level, least_level);
    return relay::with_result_types(relay::infer_type(run(module, inner)));
  };
  return pass;
}

Array<Value> describe_passes() {
  Array<Value> passes;
  for (const Pass& pass : driver::all_passes()) passes.push_back(Value(make_pass_info(pass.info)));
  return passes;
}

Array<Value> describe_config() {
  Array<Value> keys;
  for (const ConfigKey& key : config_keys()) {
    const Value standard = key.default_text.empty() ? Value() : parse_config_value(key.name, key.default_text);
    keys.push_back(Value(Array<Value>{Value(key.name), Value(key.kind), Value(key.doc), standard}));
  }
  return keys;
}

void register_passes() {
  const auto add = [](const std::string& name, const Pass& pass) {
    register_global("relay._transform." + name, PackedFunc([&pass](const Args& args) {
                      return Value(make_with_options(as_in_relay(pass), options_of(pass, args)));
                    }));
  };
  for (const Pass& pass : driver::all_passes()) {
    add(pass.info.name, pass);
    for (const std::string& alias : pass.info.aliases) add(alias, pass);
  }
  register_global("relay._transform.GetPass", make_packed([](const std::string& name, const Options& options) {
                    return make_with_options(as_in_relay(driver::get_pass(name)), options);
                  }));
  // None removes the op's legalisation.
  register_global(
      "relay.op.RegisterLegalize",
      make_packed([](const std::string& op, const std::optional<PackedFunc>& legalize, const std::string& attr) {
        legalize ? passes::set_legalize(get_op(op), *legalize, attr) : passes::clear_legalize(get_op(op), attr);
      }));
  register_global("transform.PassRegistry", make_packed(&describe_passes));
  register_global("transform.PassesNotHere", make_packed(&passes_not_here));
  register_global("transform.ConfigKeys", make_packed(&describe_config));
  register_global("transform.RegisterConfigKey", make_packed(&register_config_key));
  register_global("transform.Sequential", make_packed(&make_sequential));
  register_global("transform.MakeModulePass", make_packed(&make_module_pass));
  register_global(
      "relay._transform.MakeFunctionPass",
      make_packed([](const PackedFunc& body, const Ref<PassInfoObj>& info) { return make_function_pass(body, info); }));
  register_global("tir.transform.MakePrimFuncPass",
                  make_packed([](const PackedFunc& body, const Ref<PassInfoObj>& info) {
                    return make_function_pass(body, info, true);
                  }));
  register_global("transform.RunPass",
                  make_packed([](const PassRef& pass, const IRModule& module, const PassContextRef& context) {
                    return run_pass(pass, module, context);
                  }));
}

void register_contexts() {
  register_global("transform.EnterPassContext", make_packed(&enter_context));
  register_global("transform.ExitPassContext", make_packed(&exit_context));
  register_global("transform.OverrideInstruments", make_packed(&override_instruments));
  register_global("transform.GetCurrentPassContext", make_packed(&current_context));
  register_global("transform.IsInPassContext", make_packed(&is_in_context));
  register_global("transform.CheckContext",
                  make_packed([](const PassContextRef& context) { check_context(*context); }));
}

void register_instruments() {
  register_global("instrument.MakePassTimingInstrument",
                  make_packed([] { return make_instrument(std::make_shared<TimingInstrument>()); }));
  register_global("instrument.RenderTimePassProfiles", make_packed([](const PassInstrumentRef& instrument) {
                    const auto timing = std::dynamic_pointer_cast<TimingInstrument>(instrument->native);
                    if (!timing) throw_user_error("'{}' is not a timing instrument", instrument->name);
                    return timing->report();
                  }));
  register_global("instrument.MakeDumpInstrument", make_packed([](bool only_changes, const PackedFunc& sink) {
                    const auto write = [sink](std::string_view text) { sink(std::string(text)); };
                    return make_instrument(make_dump_instrument(only_changes ? Dump::diff : Dump::all, write));
                  }));
  register_global("instrument.MakeDumpFolderInstrument", make_packed([](const std::string& folder) {
                    return make_instrument(make_dump_folder_instrument(folder, driver::write_text));
                  }));
  register_global("instrument.MakeVerifyInstrument", make_packed([] {
                    return make_instrument(make_verify_instrument([](const IRModule& m) { relay::verify(m); }));
                  }));
  register_global("instrument.MakeRoundTripInstrument",
                  make_packed([] { return make_instrument(make_round_trip_instrument()); }));
}

}  // namespace

void register_transform_functions() {
  type_of<ModulePassObj>();
  type_of<FunctionPassObj>();
  type_of<PrimFuncPassObj>();
  type_of<SequentialObj>();
  type_of<PassContextObj>();
  type_of<PassInstrumentObj>();
  type_of<PassInfoObj>();
  register_passes();
  register_contexts();
  register_instruments();
}

}  // namespace headrace::functions
