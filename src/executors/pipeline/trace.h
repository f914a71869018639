// Traces: what each stage of a pipeline did, and when.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headrace::executors::pipeline {

// A time that a stage worked or waited. Times are nanoseconds of the monotonic clock.
struct TraceEvent {
  enum class Kind : uint8_t { call, failed_call, starved, blocked };
  int64_t begin_ns = 0, end_ns = 0;
  uint64_t request = 0;   // number of a call's first request
  uint32_t requests = 0;  // number of a call's requests
  uint32_t lane = 0;      // the stage and replica, as the pipeline counts them
  Kind kind = Kind::call;
};

// The last events of one thread. That thread adds; any other may read meanwhile.
class TraceRing {
 public:
  static constexpr size_t kEvents = size_t{1} << 16;

  TraceRing() : slots_(std::make_unique<Slot[]>(kEvents)) {}

  void add(const TraceEvent& event) noexcept;
  // Returns how many events were added.
  uint64_t size() const noexcept { return end_.load(std::memory_order_acquire); }
  // Adds the events from number `first` on to a list, oldest first. Returns how many of them were overwritten.
  uint64_t read(uint64_t first, std::vector<TraceEvent>& events) const;

 private:
  using Slot = std::array<std::atomic<uint64_t>, 4>;

  std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> begun_ = 0;  // events whose slot may be written
  std::atomic<uint64_t> end_ = 0;
};

// One line of a trace: a stage, or one of its replicas.
struct TraceLane {
  std::string stage;
  size_t group = 0;
  std::string group_name = {};
};

struct Trace {
  std::vector<TraceLane> lanes;
  std::vector<TraceEvent> events = {};  // each lane's events are in the order of time
  uint64_t overwritten = 0;             // events that the ring of their thread had no room for
  int64_t begin_ns = 0, end_ns = 0;     // begin and end of the trace
};

// Returns the trace in the Trace Event Format, which chrome://tracing and Perfetto show: a process for each group, a
// thread for each lane, and a complete event for each time, in microseconds since the trace began. A call has the
// number of its first request and how many requests it had.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
std::string chrome_trace(const Trace& trace);

}  // namespace headrace::executors::pipeline
