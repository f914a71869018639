// Ops that say where values live; PlanDevices reads them.
//
//   on_device(%x, virtual_device="cuda:0")                                  // what gives %x runs there
//   device_copy(%x, src_virtual_device="cpu:0", dst_virtual_device="cuda:0")
//
// Devices are texts of ir/virtual_device.h. Both give the elements of their argument.
#pragma once

#include "ir/virtual_device.h"
#include "ops/register.h"

namespace headrace::ops {

struct OnDeviceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.OnDeviceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<OnDeviceAttrs>& f);
  std::string virtual_device;
  bool constrain_result = false;
  bool constrain_body = true;
};

struct DeviceCopyAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DeviceCopyAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DeviceCopyAttrs>& f);
  std::string src_virtual_device, dst_virtual_device;
};

Expr on_device(Expr data, std::string virtual_device, bool constrain_result = false, bool constrain_body = true,
               Span span = {});
Expr device_copy(Expr data, std::string src_virtual_device, std::string dst_virtual_device, Span span = {});

}  // namespace headrace::ops
