#include "executors/pipeline/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_string.h"

namespace headrace::executors::pipeline {
namespace {

constexpr unsigned kLaneBits = 24;  // bits in a word that also has the kind and the number of requests

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

std::string metadata(std::string_view what, size_t group, size_t lane, const std::string& arguments) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, group, lane, arguments);
}

std::string event_text(const Trace& trace, const TraceEvent& event) {
  using Kind = TraceEvent::Kind;
  const TraceLane& lane = trace.lanes[event.lane];
  const bool is_call = event.kind == Kind::call || event.kind == Kind::failed_call;
  const int64_t begin = std::max(event.begin_ns, trace.begin_ns);
  const std::string name = is_call                       ? json_string(lane.stage)
                           : event.kind == Kind::starved ? "\"starved\""
                                                         : "\"blocked\"";
  const std::string arguments = is_call ? fmt::format(R"("request":{},"requests":{},"failed":{})", event.request,
                                                      event.requests, event.kind == Kind::failed_call)
                                        : "";
  return fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                     name, is_call ? "call" : "wait", lane.group, event.lane, microseconds(begin - trace.begin_ns),
                     microseconds(std::max<int64_t>(event.end_ns - begin, 0)), arguments);
}

}  // namespace

// The number of the event is known to readers before its slot is written, so that they can tell what they read while it
// was.
void TraceRing::add(const TraceEvent& event) noexcept {
  const uint64_t number = end_.load(std::memory_order_relaxed);
  begun_.store(number + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  Slot& slot = slots_[number % kEvents];
  slot[0].store(static_cast<uint64_t>(event.begin_ns), std::memory_order_relaxed);
  slot[1].store(static_cast<uint64_t>(event.end_ns), std::memory_order_relaxed);
  slot[2].store(event.request, std::memory_order_relaxed);
  slot[3].store(uint64_t{event.requests} << 32 | uint64_t{static_cast<uint8_t>(event.kind)} << kLaneBits | event.lane,
                std::memory_order_relaxed);
  end_.store(number + 1, std::memory_order_release);
}

uint64_t TraceRing::read(uint64_t first, std::vector<TraceEvent>& events) const {
  const uint64_t end = size();
  const uint64_t begin = std::max(first, end > kEvents ? end - kEvents : 0);
  const auto start = static_cast<std::ptrdiff_t>(events.size());
  for (uint64_t number = begin; number < end; ++number) {
    const Slot& slot = slots_[number % kEvents];
    const uint64_t rest = slot[3].load(std::memory_order_relaxed);
    events.push_back({.begin_ns = static_cast<int64_t>(slot[0].load(std::memory_order_relaxed)),
                      .end_ns = static_cast<int64_t>(slot[1].load(std::memory_order_relaxed)),
                      .request = slot[2].load(std::memory_order_relaxed),
                      .requests = static_cast<uint32_t>(rest >> 32),
                      .lane = static_cast<uint32_t>(rest & ((1U << kLaneBits) - 1)),
                      .kind = static_cast<TraceEvent::Kind>(rest >> kLaneBits & 0xff)});
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint64_t begun = begun_.load(std::memory_order_relaxed);
  const uint64_t first_whole = std::min(std::max(begin, begun > kEvents ? begun - kEvents : 0), end);
  events.erase(events.begin() + start, events.begin() + start + static_cast<std::ptrdiff_t>(first_whole - begin));
  return first_whole - std::min(first, first_whole);
}

std::string chrome_trace(const Trace& trace) {
  std::string text = fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"overwritten_events":{},"seconds":{:.9f}}},)"
                                 "\n\"traceEvents\":[",
                                 trace.overwritten, static_cast<double>(trace.end_ns - trace.begin_ns) * 1e-9);
  const char* separator = "\n";
  const auto add = [&](const std::string& item) {
    text += separator;
    text += item;
    separator = ",\n";
  };
  for (size_t i = 0; i < trace.lanes.size(); ++i) {
    const TraceLane& lane = trace.lanes[i];
    const bool is_first = i == 0 || std::none_of(trace.lanes.begin(), trace.lanes.begin() + static_cast<long>(i),
                                                 [&](const TraceLane& other) { return other.group == lane.group; });
    if (is_first) add(metadata("process_name", lane.group, i, "\"name\":" + json_string("group " + lane.group_name)));
    add(metadata("thread_name", lane.group, i, "\"name\":" + json_string(lane.stage)));
    add(metadata("thread_sort_index", lane.group, i, fmt::format("\"sort_index\":{}", i)));
  }
  for (const TraceEvent& event : trace.events) add(event_text(trace, event));
  return text + "\n]}\n";
}

}  // namespace headrace::executors::pipeline
