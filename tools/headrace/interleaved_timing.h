// Times several runtimes on one model in turns, so that other load on the machine affects them equally, or several
// clients of one runtime at once.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

namespace headrace::tools {

// Returns the seconds that have passed since then.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Seconds of runs.
class Times {
 public:
  void add(double seconds) { seconds_.push_back(seconds); }
  void add(const Times& other) { seconds_.insert(seconds_.end(), other.seconds_.begin(), other.seconds_.end()); }
  // These need at least one run.
  double best() const { return sorted().front(); }
  double median() const { return (sorted()[(seconds_.size() - 1) / 2] + sorted()[seconds_.size() / 2]) / 2; }
  // Returns the least time that at least `share` of the runs did not exceed.
  double percentile(double share) const;
  // Returns them as they were added.
  const std::vector<double>& in_order() const { return seconds_; }
  size_t count() const { return seconds_.size(); }
  double sum() const;

 private:
  const std::vector<double>& sorted() const;

  std::vector<double> seconds_;
  mutable std::vector<double> sorted_;  // made again when there are more of them
};

// Runs once and returns the seconds that the run took.
using TimedRun = std::function<double()>;

struct TurnOptions {
  int rounds = 1;
  int warmup = 1;      // rounds before these that do not count
  double seconds = 0;  // above 0: go on for so long, and for one round at least, in place of `rounds`
  // Before each run: threads of one runtime that still spin after its run would take processors from the next.
  std::chrono::milliseconds pause{0};
};

// Calls all runs in turns for `rounds` rounds, fewer after a StopRequest. Returns the times of each.
std::vector<Times> time_in_turns(std::span<const TimedRun> runs, const TurnOptions& options);

// The times of runs at once, and of all of them together.
struct TimesAtOnce {
  Times runs;
  double seconds = 0;
};

// Calls each run in a thread of its own for `rounds` rounds or `seconds`, all at the same time. After a
// StopRequest each ends after its first round; `pause` is ignored.
// Rethrows the first exception of a thread.
TimesAtOnce time_at_once(std::span<const TimedRun> runs, const TurnOptions& options);

}  // namespace headrace::tools
