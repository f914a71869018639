// Times pipelines of stages that do nothing, or sleep (executors/pipeline/pipeline.h).
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct StreamBenchOptions {
  int rounds = 3;
  int items = 20'000;            // items per stream of empty stages
  double sleep_seconds = 0.002;  // time that a sleeping stage takes
};

// Measures, best of the rounds: nanoseconds for one more empty stage, in the same group and in a group of its own,
// while a stream runs; nanoseconds from a submission to its result in an idle pipeline; how long a stream of 4 MB
// tensors takes, by that of 64 bytes; and the throughput of sleeping stages as a share of what the slowest allows.
// `peers` has the same of other libraries (stream_peers.h).
tools::Report measure_streams(const StreamBenchOptions& options);

}  // namespace headrace::bench
