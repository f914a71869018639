#include "tensor/device_api.h"

#include "tensor/device_kind.h"
#include "tensor/kept_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace headrace {

namespace {

class CpuDeviceApi final : public DeviceApi {
 public:
  std::string name() const override { return "cpu"; }
  bool exists(Device device) const override { return device.id == 0; }

  void* alloc(Device, size_t size_bytes, size_t alignment) override {
    // One cache line at least, so that an empty tensor has an address too.
    const size_t rounded = (std::max(size_bytes, size_t{1}) + alignment - 1) / alignment * alignment;
    void* data = rounded < size_bytes ? nullptr : std::aligned_alloc(alignment, rounded);
    if (data == nullptr) throw_user_error("out of memory: {} bytes on cpu(0)", size_bytes);
    return data;
  }
  void free(Device, void* data, StreamHandle) override {
    if (!holds_kept_memory(data, ::malloc_usable_size(data))) std::free(data);
  }
  void copy(const void* src, Device, void* dst, Device, size_t size_bytes, StreamHandle) override {
    if (size_bytes != 0) std::memmove(dst, src, size_bytes);
  }
  void sync(Device, StreamHandle) override {}
};

// Every tensor asks for it, so it takes no lock.
const std::shared_ptr<DeviceApi>& cpu_api() {
  static const auto& api = *new std::shared_ptr<DeviceApi>(std::make_shared<CpuDeviceApi>());
  return api;
}

struct DeviceTable {
  std::mutex mutex;
  std::map<int32_t, std::shared_ptr<DeviceApi>> apis;
};

DeviceTable& devices() {
  static DeviceTable& table = *new DeviceTable;
  return table;
}

}  // namespace

std::span<const DeviceKind> device_kinds() {
  static constexpr DeviceKind kKinds[] = {{"cpu", kDLCPU},       {"cuda", kDLCUDA},       {"opencl", kDLOpenCL},
                                          {"vulkan", kDLVulkan}, {"metal", kDLMetal},     {"rocm", kDLROCM},
                                          {"webgpu", kDLWebGPU}, {"hexagon", kDLHexagon}, {"ext_dev", kDLExtDev}};
  return kKinds;
}

std::string Device::to_string() const {
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.type == type) return fmt::format("{}({})", kind.name, id);
  }
  return fmt::format("device type {} ({})", type, id);
}

std::shared_ptr<DeviceApi> device_api(Device device) {
  std::shared_ptr<DeviceApi> api;
  if (device.type == kDLCPU) {
    api = cpu_api();
  } else {
    const std::lock_guard lock(devices().mutex);
    if (auto it = devices().apis.find(device.type); it != devices().apis.end()) api = it->second;
  }
  if (!api || !api->exists(device)) throw_user_error("device {} is not available", device.to_string());
  return api;
}

void register_device_api(int32_t device_type, std::shared_ptr<DeviceApi> api) {
  HEADRACE_CHECK(api != nullptr, "a null API for device type {}", device_type);
  HEADRACE_CHECK(device_type != kDLCPU, "the CPU has an API of its own");
  std::lock_guard lock(devices().mutex);
  devices().apis[device_type] = std::move(api);
}

}  // namespace headrace
