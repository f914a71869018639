#include "tools/headrace/interleaved_timing.h"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <exception>
#include <numeric>
#include <thread>

#include "tools/headrace/interruption.h"

namespace headrace::tools {

namespace {

using Clock = std::chrono::steady_clock;

// Returns whether all rounds are over after `round` of them.
bool is_done(const TurnOptions& options, Clock::time_point begin, int round) {
  if (round > 0 && StopRequest::is_made()) return true;
  return options.seconds <= 0 ? round >= options.rounds : round > 0 && seconds_since(begin) >= options.seconds;
}

}  // namespace

const std::vector<double>& Times::sorted() const {
  if (sorted_.size() != seconds_.size()) {
    sorted_ = seconds_;
    std::sort(sorted_.begin(), sorted_.end());
  }
  return sorted_;
}

double Times::percentile(double share) const {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(seconds_.size())));
  return sorted()[std::clamp<size_t>(rank, 1, seconds_.size()) - 1];
}

double Times::sum() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

std::vector<Times> time_in_turns(std::span<const TimedRun> runs, const TurnOptions& options) {
  std::vector<Times> times(runs.size());
  for (int round = 0; round < options.warmup && !StopRequest::is_made(); ++round) {
    for (const TimedRun& run : runs) run();
  }
  const auto begin = Clock::now();
  for (int round = 0; !is_done(options, begin, round); ++round) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (options.pause.count() > 0) std::this_thread::sleep_for(options.pause);
      times[i].add(runs[i]());
    }
  }
  return times;
}

TimesAtOnce time_at_once(std::span<const TimedRun> runs, const TurnOptions& options) {
  std::vector<Times> times(runs.size());
  std::vector<std::exception_ptr> errors(runs.size());
  Clock::time_point begin;
  std::barrier start(std::ssize(runs), [&]() noexcept { begin = Clock::now(); });
  const auto work = [&](size_t i) {
    bool waits = true;
    try {
      for (int round = 0; round < options.warmup && !StopRequest::is_made(); ++round) runs[i]();
      waits = false;
      start.arrive_and_wait();
      for (int round = 0; !is_done(options, begin, round); ++round) times[i].add(runs[i]());
    } catch (...) {
      errors[i] = std::current_exception();
      if (waits) start.arrive_and_drop();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < runs.size(); ++i) {
      try {
        threads.emplace_back(work, i);
      } catch (...) {  // the system has no more threads; those that wait must not wait for these
        errors[i] = std::current_exception();
        start.arrive_and_drop();
      }
    }
  }
  TimesAtOnce all{.runs = {}, .seconds = seconds_since(begin)};
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (const Times& one : times) all.runs.add(one);
  return all;
}

}  // namespace headrace::tools
