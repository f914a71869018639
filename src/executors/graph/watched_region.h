// Runs the code of a region in a thread of its own, and stops waiting for it at a deadline.
//
//   caller:  copy the inputs -> wait until the deadline -> copy the outputs
//   thread:                  -> the region's code ->
//
// The code works on copies of the tensors, with a thread pool and scratch memory of its own, so that one which never
// returns holds nothing that the rest of the run needs. What it uses stays for as long as it runs, perhaps for ever.
#pragma once

#include <headrace/kernel_abi.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "executors/message.h"
#include "object/function.h"

namespace headrace::executors {

// What a region's code left when it returned. The message is its sentence.
struct RegionOutcome {
  int32_t code = 0;
  Ref<ErrorObj> error = {};
  Message message = {};
};

struct WatchedCode {
  // Runs the code on these tensors; it may write to env.message.
  std::function<void(const hr_kernel_env& env, DLTensor* const* args, RegionOutcome& outcome)> run;
  std::shared_ptr<const void> owner;  // keeps the code in memory
  int32_t num_workers = 1;
  int64_t workspace_bytes = 0;  // of one worker
};

class WatchedRegion {
 public:
  // `args` are the region's tensors, contiguous, the last `num_outputs` of them written. Starts the thread. UserError
  // without memory or threads.
  WatchedRegion(WatchedCode code, std::span<DLTensor* const> args, size_t num_outputs);
  WatchedRegion(const WatchedRegion&) = delete;
  WatchedRegion& operator=(const WatchedRegion&) = delete;
  // Stops the thread, unless it has been given up.
  ~WatchedRegion();

  // Runs the code on tensors of those types. Returns nothing when it has not returned in time, also in an earlier run:
  // then it is given up, and the outputs are as they were.
  std::optional<RegionOutcome> run(std::span<DLTensor* const> args, std::chrono::nanoseconds limit) noexcept;

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace headrace::executors
