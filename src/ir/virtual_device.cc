#include "ir/virtual_device.h"

#include <charconv>

#include "tensor/device_kind.h"

namespace headrace {

namespace {

constexpr const char* kForm = "a device is written KIND:ID, KIND:ID/SCOPE or KIND:ID@TARGET, as cuda:1/global";

int64_t parse_kind(std::string_view name, std::string_view text) {
  std::vector<std::string_view> names;
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.name == name) return kind.type;
    names.push_back(kind.name);
  }
  throw_user_error("'{}' in '{}' is not a kind of device; there are: {}", name, text, fmt::join(names, ", "));
}

int64_t parse_id(std::string_view id, std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), value);
  if (error != std::errc() || end != id.data() + id.size() || value < 0)
    throw_user_error("'{}' in '{}' is not a number of a device; {}", id, text, kForm);
  return value;
}

}  // namespace

void VirtualDeviceNode::fields(FieldList<VirtualDeviceNode>& f) {
  f.field<&VirtualDeviceNode::device_type>("device_type", {.doc = "as DLPack numbers them: 1 is the CPU, 2 CUDA"})
      .field<&VirtualDeviceNode::virtual_device_id>("virtual_device_id", {.doc = "which of the devices of that type"})
      .field<&VirtualDeviceNode::target>("target", {.optional = true, .doc = "what its code is made for"})
      .field<&VirtualDeviceNode::memory_scope>("memory_scope", {.doc = "the kind of memory; empty: the usual one"});
}

VirtualDevice make_virtual_device(Device device, Target target, std::string memory_scope) {
  const VirtualDevice made = make_object<VirtualDeviceNode>();
  made->device_type = device.type;
  made->virtual_device_id = device.id;
  made->target = std::move(target);
  made->memory_scope = std::move(memory_scope);
  return made;
}

VirtualDevice parse_virtual_device(std::string_view text) {
  if (text.find(';') != std::string_view::npos) throw_user_error("'{}' names more than one device; {}", text, kForm);
  const VirtualDevice device = make_object<VirtualDeviceNode>();
  std::string_view rest = text;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    device->target = parse_target(rest.substr(at + 1));
    rest = rest.substr(0, at);
  }
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    device->memory_scope = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    if (device->memory_scope.empty() || device->memory_scope.find_first_of(" ,()") != std::string::npos)
      throw_user_error("'{}' names no memory after the '/'; {}", text, kForm);
  }
  std::string_view id = "0";
  if (const size_t colon = rest.find_first_of(":("); colon != std::string_view::npos) {
    const bool is_bracket = rest[colon] == '(';
    id = rest.substr(colon + 1);
    if (is_bracket && !id.ends_with(')')) throw_user_error("'{}' has no ')'; {}", text, kForm);
    if (is_bracket) id.remove_suffix(1);
    rest = rest.substr(0, colon);
  }
  device->device_type = parse_kind(rest, text);
  device->virtual_device_id = parse_id(id, text);
  return device;
}

std::vector<VirtualDevice> parse_virtual_devices(std::string_view text) {
  if (!text.starts_with('(')) return {parse_virtual_device(text)};
  if (!text.ends_with(')')) throw_user_error("'{}' has no ')' at its end; devices are written (cpu:0; cuda:0)", text);
  std::vector<VirtualDevice> devices;
  std::string_view rest = text.substr(1, text.size() - 2);
  for (size_t end = 0; end != std::string_view::npos;) {
    end = rest.find(';');
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    devices.push_back(parse_virtual_device(one));
  }
  return devices;
}

std::string to_string(const VirtualDevice& device) {
  std::string_view name = "device";
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.type == device->device_type) name = kind.name;
  }
  std::string text = fmt::format("{}:{}", name, device->virtual_device_id);
  if (!device->memory_scope.empty()) text += "/" + device->memory_scope;
  if (device->target) text += "@" + to_string(device->target);
  return text;
}

}  // namespace headrace
