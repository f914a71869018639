// The analytic time of a step: the greater of what its arithmetic and what its memory traffic take (the roofline model:
// Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009).
#pragma once

#include "cost/machine.h"

namespace headrace::cost {

// The work of one step: a kernel, a loop, a call of an op.
struct StepWork {
  double operations = 0;  // multiply-adds count twice
  double bytes_read = 0;  // each byte once, however often it is used
  double bytes_written = 0;
  DataType dtype = DataType::float_(32);  // dtype of the arithmetic
};

// Returns the seconds that `threads` threads take, at least one thread. Threads share the work equally. Data is read
// from the smallest cache that holds a thread's share of all bytes; threads share the L3 cache and the bandwidth of the
// memory. A byte written outside the L2 cache counts twice, because its line is read first. More than one thread costs
// the fork as well. InternalError for negative numbers.
double time_of(const StepWork& work, const Machine& machine, int threads = 1);

}  // namespace headrace::cost
