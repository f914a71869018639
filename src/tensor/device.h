// Device: where memory and work live, as a DLDevice: cpu(0), cuda(0), opencl(0).
#pragma once

#include <dlpack/dlpack.h>

#include "object/reflect.h"

namespace headrace {

struct Device {
  int32_t type = kDLCPU;  // a DLDeviceType
  int32_t id = 0;
  bool operator==(const Device&) const = default;
  DLDevice raw() const { return {static_cast<DLDeviceType>(type), id}; }
  // Returns the text: "cpu(0)".
  std::string to_string() const;
};
inline Device cpu(int32_t id = 0) { return {kDLCPU, id}; }

template <>
struct ValueTraits<Device> {
  static Value to(Device device) {
    RawValue raw;
    raw.type_index = type_index::kDevice;
    raw.v.v_device = {device.type, device.id};
    return Value::adopt(raw);
  }
  static bool matches(const RawValue& raw) { return raw.type_index == type_index::kDevice; }
  static Device from(const RawValue& raw) { return {raw.v.v_device.type, raw.v.v_device.id}; }
  static std::string name() { return "device"; }
};

}  // namespace headrace
