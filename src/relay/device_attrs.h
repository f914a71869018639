// The function attributes that say which device a function's values are on, as texts of ir/virtual_device.h.
#pragma once

namespace headrace::relay {

// One for each parameter: "cuda:0", or "(cpu:0; cuda:0)" for the parts of a tuple; "" where nothing is said.
inline constexpr const char* kParamVirtualDevices = "param_virtual_devices";
inline constexpr const char* kResultVirtualDevice = "result_virtual_device";

}  // namespace headrace::relay
