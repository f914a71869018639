// Timing several runtimes on one model so that a busy machine treats them alike.
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

// Runs once and gives the seconds that it took.
using TimedRun = std::function<double()>;

struct TurnOptions {
  int rounds = 1;
  // Before each run: threads of one runtime that still spin after its run would take processors from the next.
  std::chrono::milliseconds pause{0};
};

// Lets all runs take turns for so many rounds, after one round that touches their memory and is not counted. The times
// of each.
std::vector<Times> time_in_turns(std::span<const TimedRun> runs, const TurnOptions& options);

}  // namespace headrace::tools
