#include "tools/headrace/interleaved_timing.h"

#include <algorithm>
#include <thread>

namespace headrace::tools {

void Times::add(double seconds) {
  seconds_.insert(std::upper_bound(seconds_.begin(), seconds_.end(), seconds), seconds);
}

std::vector<Times> time_in_turns(std::span<const TimedRun> runs, const TurnOptions& options) {
  std::vector<Times> times(runs.size());
  for (const TimedRun& run : runs) run();
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (options.pause.count() > 0) std::this_thread::sleep_for(options.pause);
      times[i].add(runs[i]());
    }
  }
  return times;
}

}  // namespace headrace::tools
