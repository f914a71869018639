#include "driver/check_devices.h"

#include "ops/op_handles.h"
#include "ops/tensor/device.h"
#include "passes/devices/plan_devices.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::driver {

namespace {

void check_device(const std::string& text, const Span& place) {
  for (const VirtualDevice& device : parse_virtual_devices(text)) {
    if (device->device_type == kDLCPU) continue;
    throw_at(
        place, "compile",
        fmt::format("the program asks for {}, and artifacts run on the CPU alone; take the annotation out, or name "
                    "a cpu",
                    to_string(device)));
  }
}

void check_call(const relay::CallNode& call) {
  if (relay::is_call(call, op::kOnDevice)) check_device(call.attrs_as<ops::OnDeviceAttrs>().virtual_device, call.span);
  if (!relay::is_call(call, op::kDeviceCopy)) return;
  const auto& attrs = call.attrs_as<ops::DeviceCopyAttrs>();
  check_device(attrs.src_virtual_device, call.span);
  check_device(attrs.dst_virtual_device, call.span);
}

void check_plan(const relay::FunctionNode& function) {
  const auto params = function.attrs.get(passes::kParamVirtualDevices);
  if (params && params->is<Array<std::string>>()) {
    for (const std::string& device : params->as<Array<std::string>>()) {
      if (!device.empty()) check_device(device, function.span);
    }
  }
  const auto result = function.attrs.get(passes::kResultVirtualDevice);
  if (result && result->is<std::string>()) check_device(result->as<std::string>(), function.span);
}

}  // namespace

void check_devices(const IRModule& module) {
  for (const auto& [name, function] : module->functions()) {
    const auto* node = function.as<relay::FunctionNode>();
    if (node == nullptr) continue;
    check_plan(*node);
    relay::post_order(node->body, [](const Expr& e) {
      if (const auto* call = e.as<relay::CallNode>()) check_call(*call);
    });
  }
}

}  // namespace headrace::driver
