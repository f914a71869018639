// Times several runtimes on one model in turns, so that other load on the machine affects them equally.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

namespace headrace::tools {

// Seconds of runs, in ascending order.
class Times {
 public:
  void add(double seconds);
  double best() const { return seconds_.front(); }
  double median() const { return seconds_[seconds_.size() / 2]; }

 private:
  std::vector<double> seconds_;
};

// Runs once and returns the seconds that the run took.
using TimedRun = std::function<double()>;

struct TurnOptions {
  int rounds = 1;
  // Before each run: threads of one runtime that still spin after its run would take processors from the next.
  std::chrono::milliseconds pause{0};
};

// Calls all runs in turns for `rounds` rounds, after one warm-up round that is not counted. Returns the times of each.
std::vector<Times> time_in_turns(std::span<const TimedRun> runs, const TurnOptions& options);

}  // namespace headrace::tools
