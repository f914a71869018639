// Times pipelines of stages that do nothing, sleep or compute (executors/pipeline/pipeline.h).
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct StreamBenchOptions {
  int rounds = 3;
  int items = 20'000;            // items per stream of empty stages
  double sleep_seconds = 0.002;  // time that a sleeping stage takes, or the slowest of several
};

// Measures, best of the rounds, in which all take turns: nanoseconds for one more empty stage, in the same group and in
// a group of its own, while a stream runs, and its instructions; nanoseconds from a submission to its result in an idle
// pipeline; and how long a stream of 4 MB tensors takes, by that of 64 bytes. `bounds` has the throughput of stages
// that sleep or compute as a share of what the slowest allows (stream_bounds.h). `peers` has the same of other
// libraries (stream_peers.h), and the ratios of ours to theirs.
tools::Report measure_streams(const StreamBenchOptions& options);

}  // namespace headrace::bench
