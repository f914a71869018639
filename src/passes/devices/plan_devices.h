// PlanDevices: says for every value which device it is on, from what the program says of some, and copies between them.
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
// What says where: on_device, whose argument is computed there (constrain_body) and whose own value is there
// (constrain_result); device_copy; the function attributes below. Devices are texts of ir/virtual_device.h; two are one
// where the texts are equal.
//
// The rules for the rest:
//   1. An op call runs on one device: its arguments and results are there. A tuple's fields may each be elsewhere. Data
//      and references are wholly on one. A function is called with its arguments where its parameters are and gives its
//      result where its body's is, which is the function's device; that is the same at each call.
//   2. A value and each use of it are joined in the order of evaluation: both are on one device, as soon as it is known
//      of either. So what nobody annotated takes the device of its neighbours, the first that has one. When the two are
//      on different devices the value is copied for that use (device_copy), once for each device.
//   3. An on_device that leaves a side free is joined after that, then conditions of `if` with the host, which decides
//      them; they are copied there otherwise.
//   4. What is left is on the default device. Constants are on every device: they are data of the program.
//
// The result has no on_device. Its function attributes param_virtual_devices and result_virtual_device, and its
// device_copies, say what the plan was: this pass, run again, finds the same; "(cpu:0; cuda:0)" is a tuple's. A program
// that says nothing of devices is left alone, and so are functions that passes leave alone (relay/function_attrs.h).
//
// UserError for a device that is none, for one value that is annotated with two devices, for an annotation within a
// unit (FuseOps runs after this pass), and where a reference, a value of a data type or a function would have to be
// copied. Needs types. Preserves results to the last bit, and the number and order of effects.
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
// "relay.PlanDevices.default_device" and "relay.PlanDevices.host_device" of the context's configuration. UserError when
// one is no device.
DeviceOptions device_options(const pass::PassContext& context);

IRModule plan_devices(const IRModule& module, const DeviceOptions& options = {});

}  // namespace headrace::passes
