#include "devices/open_device.h"

#include <sys/prctl.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "tensor/device_api.h"

namespace headrace::devices {
namespace {

using Clock = std::chrono::steady_clock;

// The system may end the waits of a thread late by its timer slack, which is 50 us at first (prctl(2)).
class NoTimerSlack {
 public:
  NoTimerSlack() : slack_(::prctl(PR_GET_TIMERSLACK)) { ::prctl(PR_SET_TIMERSLACK, 1UL); }
  NoTimerSlack(const NoTimerSlack&) = delete;
  NoTimerSlack& operator=(const NoTimerSlack&) = delete;
  ~NoTimerSlack() {
    if (slack_ > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_));
  }

 private:
  int slack_;
};

}  // namespace

struct OpenDevice::State {
  SimulatedDevice device;
  std::mutex mutex;  // guards the four below
  std::map<void*, int64_t> pieces;
  executors::MemoryUse held;  // by codes
  int64_t used_bytes = 0;
  bool is_open = true;
  std::mutex compute;
  std::mutex link_in, link_out;
  std::atomic<uint64_t> transfers_in = 0, transfers_out = 0;
  std::mutex wait;  // for waits, which end early when the number of interrupts changes
  std::condition_variable interrupted;
  std::atomic<uint64_t> interrupts = 0;

  // Counts memory as taken; call with the mutex.
  void take(int64_t nbytes) {
    if (device.memory_bytes > 0 && nbytes > device.memory_bytes - used_bytes)
      throw_user_error("{} has {} of memory, {} are in use, and {} more do not fit", name_of(device),
                       memory_text(device.memory_bytes), memory_text(used_bytes), memory_text(nbytes));
    used_bytes += nbytes;
  }

  // Copies, and takes the link for the time of a transfer.
  void transfer(bool is_in, void* dst, const void* src, size_t nbytes) {
    const uint64_t interrupts_before = interrupts;
    const std::lock_guard lock(is_in ? link_in : link_out);
    const Clock::time_point begin = Clock::now();
    if (nbytes > 0) std::memmove(dst, src, nbytes);
    (is_in ? transfers_in : transfers_out).fetch_add(1, std::memory_order_relaxed);
    const int64_t time = transfer_ns(device, static_cast<int64_t>(nbytes));
    if (time > 0) wait_until(begin + std::chrono::nanoseconds(time), interrupts_before);
  }

  // UserError when there has been an interrupt since `interrupts_before` was read.
  void wait_until(Clock::time_point end, uint64_t interrupts_before) {
    const NoTimerSlack exact;
    std::unique_lock lock(wait);
    if (interrupted.wait_until(lock, end, [&] { return interrupts != interrupts_before; }))
      throw_user_error("{} was interrupted before its time for this was over", name_of(device));
  }

  void interrupt() {
    const std::lock_guard lock(wait);
    ++interrupts;
    interrupted.notify_all();
  }
};

// The functions of all simulated devices. Tensors refer to it, so it is one object that does not end.
class SimulatedApi final : public DeviceApi {
 public:
  static const std::shared_ptr<SimulatedApi>& instance() {
    static const auto& api = *[] {
      auto* made = new std::shared_ptr<SimulatedApi>(std::make_shared<SimulatedApi>());
      register_device_api(kDLExtDev, *made);
      return made;
    }();
    return api;
  }

  int32_t add(std::shared_ptr<OpenDevice::State> state) {
    const std::lock_guard lock(mutex_);
    states_.emplace(next_, std::move(state));
    return next_++;
  }

  // Forgets a device that is closed and has no tensors left.
  void forget_if_done(int32_t id, OpenDevice::State& state) {
    {
      const std::lock_guard lock(state.mutex);
      if (state.is_open || !state.pieces.empty()) return;
    }
    const std::lock_guard lock(mutex_);
    states_.erase(id);
  }

  std::string name() const override { return "simulated"; }
  bool exists(Device device) const override { return find(device) != nullptr; }

  void* alloc(Device device, size_t size_bytes, size_t alignment) override {
    const std::shared_ptr<OpenDevice::State> state = require(device);
    const size_t rounded = (std::max(size_bytes, size_t{1}) + alignment - 1) / alignment * alignment;
    const std::lock_guard lock(state->mutex);
    state->take(static_cast<int64_t>(rounded));
    void* data = std::aligned_alloc(alignment, rounded);
    if (data == nullptr) {
      state->used_bytes -= static_cast<int64_t>(rounded);
      throw_user_error("out of memory: {} bytes for {}", rounded, name_of(state->device));
    }
    state->pieces.emplace(data, static_cast<int64_t>(rounded));
    return data;
  }

  void free(Device device, void* data, StreamHandle) override {
    const std::shared_ptr<OpenDevice::State> state = require(device);
    {
      const std::lock_guard lock(state->mutex);
      const auto piece = state->pieces.find(data);
      state->used_bytes -= piece->second;
      state->pieces.erase(piece);
    }
    std::free(data);
    forget_if_done(device.id, *state);
  }

  // Between two devices the tensor passes both links, one after the other.
  void copy(const void* src, Device src_device, void* dst, Device dst_device, size_t size_bytes,
            StreamHandle) override {
    if (src_device == dst_device) {
      if (size_bytes > 0) std::memmove(dst, src, size_bytes);
      return;
    }
    if (src_device.type == kDLExtDev) require(src_device)->transfer(false, dst, src, size_bytes);
    if (dst_device.type == kDLExtDev) require(dst_device)->transfer(true, dst, src, size_bytes);
  }

  void sync(Device, StreamHandle) override {}

  bool interrupt(Device device) {
    const std::shared_ptr<OpenDevice::State> state = device.type == kDLExtDev ? find(device) : nullptr;
    if (state != nullptr) state->interrupt();
    return state != nullptr;
  }

 private:
  std::shared_ptr<OpenDevice::State> find(Device device) const {
    const std::lock_guard lock(mutex_);
    const auto found = states_.find(device.id);
    return found == states_.end() ? nullptr : found->second;
  }
  std::shared_ptr<OpenDevice::State> require(Device device) const {
    std::shared_ptr<OpenDevice::State> state = find(device);
    HEADRACE_CHECK(state != nullptr, "{} is used and does not exist", device.to_string());
    return state;
  }

  mutable std::mutex mutex_;  // guards the two below; never taken with that of a device
  std::map<int32_t, std::shared_ptr<OpenDevice::State>> states_;
  int32_t next_ = 0;
};

OpenDevice::OpenDevice(const SimulatedDevice& device) : state_(std::make_shared<State>()) {
  state_->device = device;
  location_ = {.device = {kDLExtDev, SimulatedApi::instance()->add(state_)}, .memory_kind = name_of(device)};
}

OpenDevice::~OpenDevice() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_open = false;
  }
  SimulatedApi::instance()->forget_if_done(location_.device.id, *state_);
}

const SimulatedDevice& OpenDevice::device() const { return state_->device; }

void OpenDevice::hold(const executors::pipeline::StageCode& code) {
  const std::lock_guard lock(state_->mutex);
  executors::MemoryUse all = state_->held;
  code.add_memory(all);
  state_->take(all.total_bytes() - state_->held.total_bytes());
  state_->held = std::move(all);
}

int64_t OpenDevice::bytes_in_use() const {
  const std::lock_guard lock(state_->mutex);
  return state_->used_bytes;
}

LinkCounts OpenDevice::counts() const {
  return {.transfers_in = state_->transfers_in.load(std::memory_order_relaxed),
          .transfers_out = state_->transfers_out.load(std::memory_order_relaxed)};
}

OpenDevice::Turn::Turn(OpenDevice& device) : state_(*device.state_), interrupts_(state_.interrupts) {
  state_.compute.lock();
  begin_ = Clock::now();
}

OpenDevice::Turn::~Turn() { state_.compute.unlock(); }

void OpenDevice::Turn::wait() const {
  const double taken = std::chrono::duration<double, std::nano>(Clock::now() - begin_).count();
  const double wanted = taken / state_.device.speed;
  if (wanted <= taken) return;
  state_.wait_until(begin_ + std::chrono::nanoseconds(static_cast<int64_t>(std::min(wanted, 1e18))), interrupts_);
}

bool interrupt_device(Device device) noexcept { return SimulatedApi::instance()->interrupt(device); }

}  // namespace headrace::devices
