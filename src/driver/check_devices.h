// Programs that ask for a device that no artifact runs on are refused before the work: nothing runs elsewhere in
// silence.
#pragma once

#include "ir/module.h"

namespace headrace::driver {

// UserError, saying where, for an on_device, a device_copy or a function's planned device (PlanDevices) that is not the
// CPU. `module` is typed.
void check_devices(const IRModule& module);

}  // namespace headrace::driver
