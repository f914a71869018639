// SimulatedDevice: the numbers of a device that this machine does not have, and their text.
//
//   sim:0(speed=0.5, memory=64MiB, link=2GB/s, latency=20us)
//
// Its memory is apart from the host's, behind a link that takes one transfer at a time in each direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/location.h"

namespace headrace::devices {

struct SimulatedDevice {
  int32_t number = 0;            // tells the devices of one pipeline apart
  double speed = 1;              // a stage takes 1 / speed of its time on the cores of this machine
  int64_t memory_bytes = 0;      // 0: no limit
  int64_t bytes_per_second = 0;  // speed of the link, in each direction; 0: no limit
  int64_t latency_ns = 0;        // latency of each transfer
  bool operator==(const SimulatedDevice&) const = default;
};

inline constexpr double kMostSpeed = 1e6, kLeastSpeed = 1e-6;

// Returns "sim:0".
std::string name_of(const SimulatedDevice& device);
// Returns the text above, which parse_simulated_device reads. It leaves out numbers without a limit.
std::string to_string(const SimulatedDevice& device);
// Reads that text. The number, and everything in the brackets, may be missing: `number` is then the device's. Memory is
// in B, KB, MB, GB, KiB, MiB, GiB, or K, M, G, which are KiB and so on; the link in B/s, KB/s, MB/s, GB/s; the latency
// in ns, us, ms, s. UserError for another form, and for numbers out of range.
SimulatedDevice parse_simulated_device(std::string_view text, int32_t number = 0);

// Returns where the plan of a pipeline has the stages of the device: an ext_dev with the numbers as its kind of memory.
artifact::Location plan_location(const SimulatedDevice& device);
// Returns the device of a plan's location; nothing for one that no simulated device has. UserError for wrong numbers.
std::optional<SimulatedDevice> simulated_device_at(const artifact::Location& location);

// Returns the place of a plan as users write it: the text of a simulated device, or that of the location.
std::string place_text(const artifact::Location& location);

// Returns "64MiB", or "1000B": exactly, in the largest unit that divides it.
std::string memory_text(int64_t nbytes);
// Returns the bytes that a tensor takes of a device's memory, which is given out in whole lines of 64 bytes.
int64_t tensor_memory(int64_t nbytes);
// Returns the time of one transfer over the link.
int64_t transfer_ns(const SimulatedDevice& device, int64_t nbytes);

}  // namespace headrace::devices
