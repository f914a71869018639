#include "ops/eval_work.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "base/interrupt.h"

namespace headrace::ops {

namespace {

// Starting a thread takes as long as some 10,000 steps; a part should take many times that.
constexpr double kStepsOfAPart = 1e6;

}  // namespace

void EvalWork::spend(int64_t steps) {
  poll_interrupt();
  const int64_t before = steps_.fetch_add(steps, std::memory_order_relaxed);
  if (steps > limits_.steps - before)
    throw WorkLimitReached("evaluating it takes more steps than a compile spends on constants");
}

void EvalWork::take_bytes(int64_t bytes) {
  if (bytes > limits_.bytes - bytes_)
    throw WorkLimitReached("its results take more memory than a compile spends on constants");
  bytes_ += bytes;
}

void EvalWork::for_each_part(int64_t count, double steps_each,
                             const std::function<void(int64_t, int64_t)>& body) const {
  const double most_parts =
      std::min(static_cast<double>(count), steps_each * static_cast<double>(count) / kStepsOfAPart);
  const auto parts = static_cast<int64_t>(std::min<double>(limits_.threads, most_parts));
  if (parts <= 1) return body(0, count);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(parts));
  {
    std::vector<std::jthread> threads;
    const auto run = [&](int64_t part) {
      try {
        body(count * part / parts, count * (part + 1) / parts);
      } catch (...) {
        errors[static_cast<size_t>(part)] = std::current_exception();
      }
    };
    for (int64_t part = 1; part < parts; ++part) threads.emplace_back(run, part);
    run(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace headrace::ops
