// Predictions of the simulator beside the pipelines that they are for.
#pragma once

#include "bench/stream.h"

namespace headrace::bench {

// Runs 12 pipelines of sleeping stages: chains of equal and of unequal stages, edges that skip stages, branches that
// join, stages with replicas, stages that share a thread. Each is predicted by the time that its sleeps take in a
// thread alone, measured in the same rounds. The report has, for each, requests per second as predicted and as achieved
// (median of the rounds), and the ratio of the two with its 95 % interval. `holds` is false where the interval lies
// wholly outside of 5 % around 1.
tools::Report measure_predictions(const StreamBenchOptions& options);

}  // namespace headrace::bench
