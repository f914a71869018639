// Rejects programs that ask for a device other than the CPU, so that nothing runs silently on another device than the
// program says.
#pragma once

#include "ir/module.h"

namespace headrace::driver {

// Throws UserError at the first on_device, device_copy or function device planned by PlanDevices that is not the CPU.
// `module` must be typed.
void check_devices(const IRModule& module);

}  // namespace headrace::driver
