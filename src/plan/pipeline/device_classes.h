// The devices of a split (split.h) without what does not matter: devices that can be swapped are one class, and the
// planner counts how many of each class are taken.
#pragma once

#include "plan/pipeline/split.h"

namespace headrace::plan {

// Longer than any time of a stage; sums of two do not overflow.
inline constexpr int64_t kNever = INT64_MAX / 4;

struct DeviceClass {
  int32_t kind = 0;
  int64_t memory_bytes = kNoMemoryLimit;
  bool overlaps = false;
  std::vector<int32_t> devices;

  // Returns the time of a stage, kNever at most.
  int64_t stage_time(int64_t compute_ns, int64_t transfers_ns) const;
};

struct DeviceClasses {
  std::vector<DeviceClass> classes;
  std::vector<SplitLink> links;  // [from * size + to]; that of a class to itself joins two of its devices
  int32_t num_devices = 0;

  size_t size() const { return classes.size(); }
  // Returns the time of a transfer between two devices of these classes.
  int64_t transfer_ns(size_t from, size_t to, int64_t bytes) const;
  // Returns the shortest time of a transfer from another device to one of `to`, or from one of `from`. 0 when there is
  // one device only.
  int64_t least_in_ns(size_t to, int64_t bytes) const;
  int64_t least_out_ns(size_t from, int64_t bytes) const;
};

DeviceClasses classify_devices(const SplitProblem& problem);

// Ways to take devices, one stage after another. A state says which devices are taken, as numbers of each class.
struct DeviceStates {
  struct Step {
    int32_t from, to;
    int32_t device_class;
    int32_t replicas;
  };
  std::vector<int32_t> used;    // by state: devices that may be taken; state 0 has none
  std::vector<int32_t> counts;  // [state * number of classes + class]: those of each class
  std::vector<Step> steps;      // `from` is below `to`
  bool is_complete = false;     // every order in which stages can have devices is one way

  int32_t size() const { return static_cast<int32_t>(used.size()); }
};

// Returns all ways as one element, when they have at most kMaxDeviceStates states. Otherwise some orders of the
// devices, one element for each; stages then take devices in that order.
inline constexpr int64_t kMaxDeviceStates = 256;
std::vector<DeviceStates> device_states(const DeviceClasses& classes, int32_t max_replicas);

}  // namespace headrace::plan
