// A pool of threads that stay alive, for the parallel loops of kernels.
#pragma once

#include <headrace/kernel_abi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/processors.h"

namespace headrace::runtime {

inline constexpr int32_t kMaxWorkers = 512;

// Worker 0 is the calling thread. The others wait for a job, first spinning for some microseconds and then asleep;
// while a run holds the pool they only spin, because waking a thread between two kernels costs more than most kernels.
// Part w of W, the iterations n*w/W .. n*(w+1)/W-1, goes to worker w, so that one thread works on the same rows in one
// loop after another. When a worker is still waking up after worker 0 has done its own part, worker 0 takes that part,
// too.
//
// Any number of threads may call parallel_for at once. One of them gets the workers and the others run their loops
// themselves, as do nested loops and loops in a process that was forked after the pool was made.
class ThreadPool {
 public:
  // Starts the workers, 1 <= num_workers <= kMaxWorkers, on the processors `cpus` if there are any; worker 0, the
  // calling thread, stays where it is. UserError when the system has no more threads, and as check_cpus.
  explicit ThreadPool(int32_t num_workers, std::vector<int32_t> cpus = {});
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Stops the workers; no parallel_for may be running.
  ~ThreadPool();

  int32_t num_workers() const { return num_workers_; }

  // Implements hr_parallel_for on this pool: `env->num_workers` is num_workers(). Allocates nothing, throws nothing.
  int32_t parallel_for(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) noexcept;

  // Returns the function for hr_kernel_env::parallel_for, with the pool in hr_kernel_env::host.
  static int32_t parallel_for_entry(const hr_kernel_env* env, hr_parallel_body body, void* closure,
                                    int64_t count) noexcept;

  // Keeps the workers spinning for the duration of a run, whose loops follow each other closely.
  class Hold {
   public:
    explicit Hold(ThreadPool& pool) noexcept : pool_(pool) { pool_.holders_.fetch_add(1, std::memory_order_relaxed); }
    ~Hold() { pool_.holders_.fetch_sub(1, std::memory_order_relaxed); }
    Hold(const Hold&) = delete;

   private:
    ThreadPool& pool_;
  };

 private:
  struct Job {
    const hr_kernel_env* env = nullptr;
    hr_parallel_body body = nullptr;
    void* closure = nullptr;
    int64_t count = 0;
  };
  // The part of a job that one worker runs, and its result; on its own cache line.
  struct alignas(128) Part {
    std::atomic<uint32_t> taken = 0;  // the last epoch in which a worker took it
    int32_t status = 0;
    std::array<char, 256> message{};
  };

  // Returns once `value` is not `old`.
  void wait_while(const std::atomic<uint32_t>& value, uint32_t old) const noexcept;
  void work(int32_t index) noexcept;
  // Returns true for one caller per epoch. That caller must run the part, and the job waits for it.
  bool take(int32_t index, uint32_t epoch) noexcept;
  void run_part(int32_t index) noexcept;
  void run_and_report(int32_t index) noexcept;
  int32_t first_failure(const hr_kernel_env* env) const noexcept;
  void stop() noexcept;

  int32_t num_workers_;
  std::vector<int32_t> cpus_;
  int spin_rounds_;
  uint64_t process_;
  std::atomic<bool> is_busy_ = false;  // one job at a time; the holder is worker 0
  std::atomic<bool> is_stopping_ = false;
  std::atomic<int32_t> holders_ = 0;
  Job job_;
  std::vector<Part> parts_;
  alignas(128) std::atomic<uint32_t> epoch_ = 0;    // grows by one per job
  alignas(128) std::atomic<uint32_t> pending_ = 0;  // parts that have not ended, but for part 0
  std::vector<std::thread> threads_;
};

// Returns the process's pool with that many workers. It is made at first use and shared by all executors, so that ten
// executors do not have ten times the threads; it ends with its last user. Throws as the constructor does.
std::shared_ptr<ThreadPool> shared_pool(int32_t num_workers);

}  // namespace headrace::runtime
