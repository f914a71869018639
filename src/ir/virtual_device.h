// VirtualDevice: where a value is to live, as a program says it: a device that need not exist on this machine, the
// target its code is made for, the kind of memory.
//
//   cpu:0    cuda:1    cuda:1/global.texture    opencl:0@llvm -mcpu=znver4
#pragma once

#include "ir/target.h"
#include "tensor/device.h"

namespace headrace {

struct VirtualDeviceNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "VirtualDevice";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<VirtualDeviceNode>& f);
  int64_t device_type = kDLCPU;  // a DLDeviceType
  int64_t virtual_device_id = 0;
  Target target;             // null: the device's usual one
  std::string memory_scope;  // empty: the device's usual memory
};
using VirtualDevice = Ref<VirtualDeviceNode>;

VirtualDevice make_virtual_device(Device device, Target target = {}, std::string memory_scope = {});

// Parses KIND[:ID][/SCOPE][@TARGET]; cuda(1) is accepted for cuda:1. UserError that shows the form: an unknown kind (it
// lists them), an id that is not a number, an empty scope or target.
VirtualDevice parse_virtual_device(std::string_view text);

// Parses one device for all parts of a value, or "(cpu:0; cuda:0)", one for each part. UserError as
// parse_virtual_device.
std::vector<VirtualDevice> parse_virtual_devices(std::string_view text);

// Returns the text form, with the id; parse_virtual_device gives an equal device.
std::string to_string(const VirtualDevice& device);

}  // namespace headrace
