#include "executors/pipeline/core.h"

#include "base/error.h"

namespace headrace::executors::pipeline {

// Counts the replicas of all stages, in the order in which requests pass these.
void Core::number_lanes() {
  uint32_t lane = 0;
  for (const std::unique_ptr<Stage>& stage : flow_->stages()) {
    for (const std::unique_ptr<Replica>& replica : stage->replicas) replica->lane = lane++;
  }
}

void Core::start_trace() {
  check_not_forked();
  const std::lock_guard lock(trace_mutex_);
  if (is_tracing_) throw_user_error("the pipeline records a trace already; stop that one first");
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker->trace == nullptr) worker->trace = std::make_unique<TraceRing>();
    worker->first_event = worker->trace->size();
  }
  is_tracing_ = true;
  trace_begin_ns_ = nanoseconds_of(Clock::now());
  for (const std::unique_ptr<Worker>& worker : workers_) {
    for (Stage* stage : worker->stages)
      stage->replicas[worker->replica]->trace.store(worker->trace.get(), std::memory_order_release);
  }
}

Trace Core::trace() const {
  const std::lock_guard lock(trace_mutex_);
  return read_trace();
}

Trace Core::stop_trace() {
  const std::lock_guard lock(trace_mutex_);
  Trace trace = read_trace();
  is_tracing_ = false;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    for (Stage* stage : worker->stages)
      stage->replicas[worker->replica]->trace.store(nullptr, std::memory_order_release);
  }
  return trace;
}

// Returns what was recorded since the trace began; nothing when none has begun.
Trace Core::read_trace() const {
  Trace trace{.lanes = {}, .begin_ns = trace_begin_ns_, .end_ns = nanoseconds_of(Clock::now())};
  for (const std::unique_ptr<Stage>& stage : flow_->stages()) {
    const size_t group = stage->spec.group;
    for (size_t replica = 0; replica < stage->replicas.size(); ++replica)
      trace.lanes.push_back(
          {.stage = replica == 0 ? stage->spec.name : fmt::format("{} #{}", stage->spec.name, replica + 1),
           .group = group,
           .group_name = spec_.groups[group].name.empty() ? std::to_string(group) : spec_.groups[group].name});
  }
  if (!is_tracing_ || is_forked()) return trace;
  for (const std::unique_ptr<Worker>& worker : workers_)
    trace.overwritten += worker->trace->read(worker->first_event, trace.events);
  return trace;
}

}  // namespace headrace::executors::pipeline
