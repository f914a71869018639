#include "cost/time_of.h"

#include <algorithm>

#include "base/error.h"

namespace headrace::cost {

double time_of(const StepWork& work, const Machine& machine, int threads) {
  HEADRACE_CHECK(work.operations >= 0 && work.bytes_read >= 0 && work.bytes_written >= 0 && threads >= 1,
                 "a step of {} operations, {} and {} bytes on {} threads", work.operations, work.bytes_read,
                 work.bytes_written, threads);
  const double by_operations = work.operations / (peak_gigaops(machine, work.dtype) * 1e9 * threads);
  const double all = work.bytes_read + work.bytes_written;
  const bool fits_l2 = all / threads <= static_cast<double>(machine.l2_bytes);
  const bool fits_l3 = all <= static_cast<double>(machine.l3_bytes);
  const double gigabytes = fits_l2   ? machine.l2_gigabytes * threads
                           : fits_l3 ? machine.l3_gigabytes * threads
                                     : std::min(machine.dram_gigabytes * threads, machine.all_dram_gigabytes);
  const double traffic = work.bytes_read + work.bytes_written * (fits_l2 ? 1 : 2);
  const double fork = threads > 1 ? machine.fork_seconds : 0;
  return std::max(by_operations, traffic / (gigabytes * 1e9)) + fork;
}

}  // namespace headrace::cost
