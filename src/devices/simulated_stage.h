// A stage of a pipeline on a simulated device.
#pragma once

#include "devices/open_device.h"
#include "executors/pipeline/stage_code.h"

namespace headrace::devices {

// Puts a code on a device: its ports have the device's memory, it takes turns with the device's other stages, and a
// call takes 1 / speed of its time, but never less than the call itself. Takes the memory of its constants and working
// memory. The code is computed on the host, over views of the device's tensors; a value that lies elsewhere fails the
// request. UserError for a port of any value, and without memory.
std::shared_ptr<executors::pipeline::StageCode> make_simulated_stage(
    std::shared_ptr<executors::pipeline::StageCode> code, std::shared_ptr<OpenDevice> device);

}  // namespace headrace::devices
