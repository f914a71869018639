// PlanDevices: assigns a device to every value, from annotations of some values, and inserts copies between devices.
//
//   def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
//     %0 = on_device(add(%x, %y), virtual_device="cuda:0");
//     on_device(exp(%0), virtual_device="cpu:0")
//   }
//     ->
//   def @main(%x, %y, param_virtual_devices=["cuda:0", "cuda:0"], result_virtual_device="cpu:0") {
//     %0 = add(%x, %y);
//     exp(device_copy(%0, src_virtual_device="cuda:0", dst_virtual_device="cpu:0"))
//   }
//
// Annotations are on_device, whose argument is computed on its device (constrain_body) and whose own value is there
// (constrain_result); device_copy; and the function attributes below. Devices are texts of ir/virtual_device.h, equal
// when the texts are.
//
// The rules for all other values:
//   1. An op call runs on one device, with its arguments and results. The fields of a tuple may be on different
//      devices. Data and references are completely on one. A function gets its arguments on the devices of its
//      parameters and returns its result on the device of its body, the same at each call.
//   2. A value and each of its uses are unified in the order of evaluation: they are on one device as soon as the
//      device of either is known. So a value without annotation takes the device of the first neighbour that has one.
//      When the two devices differ, the value is copied for that use (device_copy), once for each device.
//   3. An on_device that leaves one side free is unified after that, then conditions of `if` with the host, which
//      evaluates them; a condition on another device is copied to the host.
//   4. Values without a device go to the default device. Constants are data of the program and exist on every device.
//
// The result has no on_device. The function attributes param_virtual_devices and result_virtual_device, and
// device_copies, record the plan, so that a second run finds the same one; "(cpu:0; cuda:0)" is the device of a tuple.
// A program without annotations stays as it is, and so do functions that passes leave alone (relay/function_attrs.h).
//
// UserError for an invalid device, for a value annotated with two devices, for an annotation inside a unit (FuseOps
// runs after this pass), and where a reference, a value of a data type or a function would have to be copied. Needs
// types. Preserves results to the last bit, and the number and order of effects.
#pragma once

#include "pass/pass.h"
#include "relay/device_attrs.h"
#include "relay/expr.h"

namespace headrace::passes {

using relay::kParamVirtualDevices;
using relay::kResultVirtualDevice;

struct DeviceOptions {
  std::string default_device = "cpu:0", host_device = "cpu:0";
};
// Reads "relay.PlanDevices.default_device" and "relay.PlanDevices.host_device" from the context's configuration.
// UserError when one is not a device.
DeviceOptions device_options(const pass::PassContext& context);

IRModule plan_devices(const IRModule& module, const DeviceOptions& options = {});

}  // namespace headrace::passes
