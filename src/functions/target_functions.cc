#include "functions/register_functions.h"
#include "driver/target.h"
#include "ir/target_tag.h"
#include "ir/virtual_device.h"
#include "object/function.h"
#include "object/repr.h"
#include "tensor/device_kind.h"

namespace headrace::functions {

namespace {

using Config = Map<std::string, Value>;

TargetOption option_from(const Config& row) {
  TargetOption option{.name = row.at("name").as<std::string>(),
                      .type = parse_target_option_type(row.at("type").as<std::string>()),
                      .doc = row.at("doc").as<std::string>()};
  option.default_value = row.at("default");
  return option;
}

TargetKind register_kind(const std::string& name, int64_t device_type, const Array<std::string>& keys,
                         const Array<Config>& options, const Value& parser) {
  TargetKind kind = make_object<TargetKindNode>();
  kind->name = name;
  kind->default_device_type = device_type;
  kind->default_keys = keys;
  for (const Config& row : options) kind->options.push_back(option_from(row));
  if (!parser.is_none()) {
    kind->parse = [name, parse = parser.as<PackedFunc>()](const Config& config) {
      const Value parsed = parse(config);
      if (parsed.is_none() || !parsed.is<Config>())
        throw_user_error("the parser of the target kind '{}' gave no dict by str but {}", name, repr(parsed));
      return parsed.as<Config>();
    };
  }
  register_target_kind(kind);
  return kind;
}

// Makes a device from the name or the DLPack number of its kind. The device need not exist on this machine.
Device to_device(const Value& kind, int64_t id) {
  if (id < 0) throw_user_error("the device id must be 0 or more, got {}", id);
  const auto index = static_cast<int32_t>(id);
  if (kind.is<std::string>()) {
    const VirtualDevice named = parse_virtual_device(kind.as<std::string>() + ":0");
    return {static_cast<int32_t>(named->device_type), index};
  }
  for (const DeviceKind& known : device_kinds()) {
    if (known.type == kind.as<int64_t>()) return {known.type, index};
  }
  throw_user_error("device: {} is not the number of a device type; give a name such as cpu or cuda",
                   kind.as<int64_t>());
}

Device device_of(const VirtualDevice& device) {
  return {static_cast<int32_t>(device->device_type), static_cast<int32_t>(device->virtual_device_id)};
}

void register_device_functions() {
  register_global("target.Device", make_packed(&to_device));
  register_global("target.VirtualDevice",
                  make_packed([](const Device& device, const Value& target, const std::string& memory_scope) {
                    return make_virtual_device(device, target.is_none() ? Target() : to_target(target), memory_scope);
                  }));
  register_global("target.ParseVirtualDevices", make_packed([](const std::string& text) {
                    return Array<VirtualDevice>(parse_virtual_devices(text));
                  }));
  register_global("target.VirtualDeviceToString",
                  make_packed([](const VirtualDevice& device) { return to_string(device); }));
  register_global("target.DeviceOf", make_packed(&device_of));
}

}  // namespace

void register_target_functions() {
  register_device_functions();
  register_global("target.Target", make_packed([](const Value& value) { return to_target(value); }));
  register_global("target.WithHost", make_packed([](const Target& target, const Value& host) {
                    return with_host(target, host.is_none() ? Target() : host.as<Target>());
                  }));
  register_global("target.ToString", make_packed([](const Target& target) { return to_string(target); }));
  register_global("target.Export", make_packed([](const Target& target) { return export_target(target); }));
  register_global("target.Features", make_packed([](const Target& target) {
                    return Array<std::string>(driver::target_features(codegen::NativeCompiler::load(), target));
                  }));
  register_global("target.RegisterKind", make_packed(&register_kind));
  register_global("target.KindNames", make_packed([] { return Array<std::string>(target_kind_names()); }));
  register_global("target.GetKind", make_packed([](const std::string& name) { return get_target_kind(name); }));
  register_global("target.SetKindHook", make_packed([](const std::string& kind, const std::string& hook,
                                                       const std::optional<PackedFunc>& function) {
                    set_kind_hook(kind, hook, function.value_or(PackedFunc()));
                  }));
  register_global("target.KindHook", make_packed([](const std::string& kind, const std::string& hook) -> Value {
                    const PackedFunc function = find_kind_hook(kind, hook);
                    return function ? Value(function) : Value();
                  }));
  register_global("target.KindOptions", make_packed([](const TargetKind& kind) { return describe_options(kind); }));
  register_global("target.RegisterTag", make_packed([](const std::string& name, const Config& config, bool override) {
                    register_target_tag(name, config, override);
                    return get_tagged_target(name);
                  }));
  register_global("target.Tags", make_packed([] { return Array<std::string>(target_tags()); }));
}

}  // namespace headrace::functions
