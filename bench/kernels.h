// Times kernels against the limits of the machine, probed in the same process between the rounds.
#pragma once

#include "bench/kernel_cases.h"
#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct KernelOptions {
  int threads = 1;
  int rounds = 30;
  double probe_seconds = 0.1;
  std::string only;  // cases whose name contains this
};

// Times every case, inputs and weights hot (each round runs a case several times and counts its best), taking turns.
// share: the least time that the peaks allow, max(operations / FMA peak, bytes / bandwidth of the smallest cache that
// holds them), by the best time. UserError when no case has such a name.
tools::Report measure_kernels(const KernelOptions& options);

}  // namespace headrace::bench
