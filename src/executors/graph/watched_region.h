// Runs the code of a region in a thread of its own, and stops waiting for it at a deadline.
//
//   caller:  copy the inputs -> wait until the deadline -> copy the outputs
//   thread:                  -> the region's code ->
//
// The code works on copies of the tensors and on scratch memory of its own, so that one which never returns holds
// nothing that the rest of the run needs. What it uses stays for as long as it runs, perhaps for ever. Parallel loops
// run on the given pool; code that hangs inside of one keeps the pool's workers, and later loops run on their calling
// threads alone.
#pragma once

#include <headrace/kernel_abi.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "executors/message.h"
#include "object/function.h"
#include "runtime/thread_pool.h"

namespace headrace::executors {

// The state that a region's code left when it returned. The message is its sentence.
struct RegionOutcome {
  int32_t code = 0;
  Ref<ErrorObj> error = {};
  Message message = {};
};

struct WatchedCode {
  // Runs the code on these tensors; it may write to env.message.
  std::function<void(const hr_kernel_env& env, DLTensor* const* args, RegionOutcome& outcome)> run;
  std::shared_ptr<const void> owner;  // keeps the code in memory
  std::shared_ptr<runtime::ThreadPool> pool;
  int64_t workspace_bytes = 0;  // workspace per worker
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
  // then it is given up, and the outputs are as they were. It is given up, too, when poll_interrupt (base/interrupt.h)
  // throws while this waits: the outcome's error is what was thrown, and later runs fail. In a process that was forked
  // since there is no thread: there the code runs on the tensors themselves, without a limit.
  std::optional<RegionOutcome> run(std::span<DLTensor* const> args, std::chrono::nanoseconds limit) noexcept;

 private:
  struct State;
  bool wait(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds limit, Ref<ErrorObj>& interrupt) noexcept;
  static RegionOutcome interrupted_before() noexcept;
  static void work(const std::shared_ptr<State>& state) noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace headrace::executors
