// Metrics: what a pipeline has done so far, stage by stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::executors::pipeline {

// Durations in nanoseconds; each is exact to a quarter.
struct Durations {
  uint64_t median = 0, p90 = 0, p99 = 0, most = 0;
};

// All replicas of the stage together. Of the time since the start, a stage was busy, waited for inputs (starved), or
// waited for a place for its outputs (blocked); the rest went to other stages of its group.
struct StageMetrics {
  std::string name;
  std::string backend;
  size_t replicas = 1;
  uint64_t items = 0;    // requests that it worked on
  uint64_t errors = 0;   // requests that failed here
  uint64_t skipped = 0;  // requests that had failed before
  uint64_t busy_ns = 0, starved_ns = 0, blocked_ns = 0;
  // For a stage that takes several requests in one call: calls, without those that tried a request again alone; and the
  // time from the arrival of each request to the begin of its call, added up over all requests.
  uint64_t batches = 0, waited_ns = 0;
  // For a stage in processes of its own: that of each replica, 0 for one that does not run now; and how often one was
  // started again.
  std::vector<int64_t> pids = {};
  uint64_t restarts = 0;
  Durations run = {};
};

struct PipelineMetrics {
  uint64_t submitted = 0;
  uint64_t succeeded = 0, failed = 0, cancelled = 0, expired = 0, dropped = 0, stopped = 0;  // outcomes
  uint64_t refused = 0;     // submissions that were not taken
  size_t in_flight = 0;     // places that are taken
  size_t waiting = 0;       // requests that no stage has begun
  uint64_t elapsed_ns = 0;  // since the start
  Durations latency = {};   // from submission to success
  std::vector<StageMetrics> stages = {};
  std::string bottleneck = {};  // the stage that was busy most, by replica; empty before the first request
};

}  // namespace headrace::executors::pipeline
