// DeviceApi: the functions that a device offers. There is one object per device type; an NDArray references its
// device's object, so that a device outlives its memory.
#pragma once

#include <memory>

#include "tensor/device.h"

namespace headrace {

using StreamHandle = void*;

class DeviceApi {
 public:
  virtual ~DeviceApi() = default;
  virtual std::string name() const = 0;
  virtual bool exists(Device device) const = 0;
  // Returns memory of `size_bytes` at a multiple of `alignment`; UserError when there is not enough.
  virtual void* alloc(Device device, size_t size_bytes, size_t alignment) = 0;
  // Frees after the work queued on `stream` so far.
  virtual void free(Device device, void* data, StreamHandle stream) = 0;
  // Copies between this device and the CPU, or within it.
  virtual void copy(const void* src, Device src_device, void* dst, Device dst_device, size_t size_bytes,
                    StreamHandle stream) = 0;
  // Waits for all work queued on `stream`.
  virtual void sync(Device device, StreamHandle stream) = 0;
};

// Returns the API of a device. UserError that names the device when its type has no API or the device does not exist.
std::shared_ptr<DeviceApi> device_api(Device device);
// Makes a device type known; a later registration of the same type replaces the earlier one. The CPU's is fixed:
// InternalError for another one.
void register_device_api(int32_t device_type, std::shared_ptr<DeviceApi> api);

}  // namespace headrace
