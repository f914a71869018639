// The kinds of devices that programs name, whether this machine has one or not.
#pragma once

#include <span>
#include <string_view>

#include "tensor/device.h"

namespace headrace {

struct DeviceKind {
  std::string_view name;
  int32_t type;  // a DLDeviceType
};
std::span<const DeviceKind> device_kinds();

}  // namespace headrace
