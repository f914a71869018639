// OpenDevice: a simulated device that exists in this process, with memory, a link and time of its own.
//
// Tensors on it are of the device type ext_dev. Their memory is a piece of the host's, but nothing takes it for the
// host's: executors, DLPack and stages on other devices refuse it, and NDArray::copy_from brings it over the link.
#pragma once

#include <chrono>
#include <memory>

#include "devices/simulated_device.h"
#include "executors/pipeline/stage_code.h"

namespace headrace::devices {

// The transfers over a link so far.
struct LinkCounts {
  uint64_t transfers_in = 0, transfers_out = 0;  // to the device, from it
};

// The owner of a device. Tensors outlive it, and keep the device's memory until the last one ends. Any thread may call
// its functions.
class OpenDevice {
 public:
  // Makes a device that shares nothing with others of the same numbers.
  explicit OpenDevice(const SimulatedDevice& device);
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  ~OpenDevice();

  const SimulatedDevice& device() const;
  // Returns the device of its tensors, an ext_dev whose number is its own in this process, with its name as the memory.
  const artifact::Location& location() const { return location_; }
  // Takes the memory of a code's weights and working memory, for as long as the device is open. Weights that a code
  // shares with another one of the device take memory once, so codes live as long as the device. UserError, with the
  // numbers, where less is left.
  void hold(const executors::pipeline::StageCode& code);
  int64_t bytes_in_use() const;
  LinkCounts counts() const;

  // Runs what the device computes, alone, and waits until the device has had its time for that. UserError when it is
  // interrupted.
  template <typename Compute>
  auto run(Compute compute) {
    const Turn turn(*this);
    auto result = compute();
    turn.wait();
    return result;
  }

 private:
  struct State;
  friend class SimulatedApi;

  // The time of one call.
  class Turn {
   public:
    explicit Turn(OpenDevice& device);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();
    void wait() const;

   private:
    State& state_;
    uint64_t interrupts_;
    std::chrono::steady_clock::time_point begin_;
  };

  std::shared_ptr<State> state_;
  artifact::Location location_;
};

// Ends the waits of the calls and transfers that a device has now, each with a UserError. Returns whether it is the
// device of an open one's tensors.
bool interrupt_device(Device device) noexcept;

}  // namespace headrace::devices
