// Executor: one program, ready to run. The graph executor implements it; the C API, modules, Python, the programs and
// the stages of pipelines use it. An artifact's static main (plan/static_main.h) runs the same steps for clients
// without the runtime.
//
//   bind the inputs and outputs once, or set them for each run  ->  run  ->  read the outputs
//
// All memory is taken when an executor is made. Setting, binding and running throw nothing, they return a Status, and
// allocate nothing, except for the native form of a region in the run in which its backend fails. With a time limit for
// regions, their code runs on threads of its own.
#pragma once

#include <dlpack/dlpack.h>
#include <headrace/reason.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "object/function.h"
#include "runtime/thread_pool.h"
#include "runtime/turn.h"

namespace headrace::executors {

// How a call ended. The views are valid until the executor's next call.
struct [[nodiscard]] Status {
  int32_t code = 0;  // 0: ok; otherwise what the kernel returned, or the reason
  hr_reason reason = HR_REASON_NONE;
  std::string_view op;       // the step's name in the model, or the tensor's
  std::string_view message;  // the kernel's sentence, or ours
  Ref<ErrorObj> error = {};  // the error of an external call; null for other failures

  bool ok() const { return code == 0; }
};
// Throws a UserError with the op's name for a call that failed, or the exception of another language that ended it.
void throw_if_failed(const Status& status);

// Says what happens to a region whose backend is missing, or fails to load or to run.
enum class Fallback : uint8_t {
  native,  // its native form runs instead, if the file has one: from then on, and for that run, too
  none,    // making the executor, or the run, fails
};

// The threads of an executor, and what it does where a backend fails. The threads are those of `pool` if one is given,
// else a pool of its own on the processors `cpus`, else the process's shared pool of that many threads. Executors with
// pools of their own run at the same time without waiting for each other's workers.
struct ExecutorOptions {
  int32_t threads = 0;             // 0: as many as `cpus`, else the artifact's default, else one per processor
  std::vector<int32_t> cpus = {};  // numbers of processors, as the system counts them; the caller's thread is not moved
  std::shared_ptr<runtime::ThreadPool> pool = {};
  Fallback fallback = Fallback::native;
  // How long a region's code may take in one run. One that takes longer has failed, and is not called again; its thread
  // is left to itself, with copies of the region's tensors. 0: any time, and no copies.
  double region_timeout_seconds = 0;
};
// Limits above this number of seconds, and negative ones, are refused.
inline constexpr double kMaxRegionTimeout = 1e6;

// Counts since the executor was made.
struct Metrics {
  uint64_t runs = 0;       // that were started
  uint64_t failures = 0;   // runs that failed
  uint64_t fallbacks = 0;  // regions that run natively, because their backend is missing or failed
};

// A region that runs natively from some time on, and why.
struct FallbackEvent {
  std::string region;
  std::string backend;
  hr_reason reason = HR_REASON_NONE;  // BACKEND_MISSING or BACKEND_FAILED
  std::string message;                // the backend's message
  uint64_t run = 0;                   // the run in which it failed, counted from 1; 0: before the first
};

// The memory that executors hold together beside their inputs and outputs.
struct MemoryUse {
  int64_t working_bytes = 0;
  // The parts of weights that runs read, each from its first byte on and once: programs of one artifact share them.
  std::vector<std::span<const std::byte>> weights = {};

  void add_weight(std::span<const std::byte> read);
  int64_t total_bytes() const;
};

class PartTimes;

// One run at a time; executors of one program run side by side. Tensors lie on the CPU.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  virtual const std::vector<artifact::TensorSpec>& inputs() const = 0;
  virtual const std::vector<artifact::TensorSpec>& outputs() const = 0;
  virtual const std::vector<artifact::BoundParam>& bound_params() const = 0;
  virtual int32_t num_threads() const = 0;
  // Returns the number of steps that a run can time.
  virtual size_t num_steps() const = 0;
  // Returns these steps, in the order in which they run; none if they are not known.
  virtual std::span<const artifact::Step> steps() const { return {}; }
  // May be called from any thread.
  virtual Metrics metrics() const = 0;
  // Adds what it holds beside its inputs and outputs; nothing if that is unknown.
  virtual void add_memory(MemoryUse&) const {}
  // Returns the regions that have fallen back, in the order in which they did. May be called from any thread.
  virtual std::vector<FallbackEvent> fallbacks() const = 0;

  // Copies `tensor` into the executor's memory. Fails with BAD_TENSOR when there is no such input, or when its device,
  // dtype or shape is not the program's; strides may be any.
  virtual Status set_input(size_t index, const DLTensor& tensor) noexcept = 0;
  // Make the program read or write `tensor` itself in all runs until set or bound again. It must also be contiguous and
  // aligned to its element. The memory is the caller's; an output's must not overlap an input's or another output's,
  // which the next run checks once.
  virtual Status bind_input(size_t index, const DLTensor& tensor) noexcept = 0;
  // Binds `tensor` if it is contiguous and aligned, else copies it: for callers that take tensors as they come.
  virtual Status give_input(size_t index, const DLTensor& tensor) noexcept = 0;
  virtual Status bind_output(size_t index, const DLTensor& tensor) noexcept = 0;

  // Runs the program. Fails with INPUT_MISSING when an input was never set, BAD_TENSOR when an output shares memory
  // with an input or another output, KERNEL_FAILED when a step says so or gives a bounded output an extent past its
  // bound, BACKEND_FAILED when the code of a region's backend says so and no native form may run: the message names
  // the backend and the region. Given a number for each step, it writes how long the step took there.
  virtual Status run(std::span<uint64_t> step_nanoseconds = {}) noexcept = 0;
  // Records the parts of parallel loops of runs whose steps are timed, from now on or, with null, no longer
  // (executors/part_times.h). The recorder must live until then, and know of num_threads() threads. Regions that run in
  // their native form or on a thread of their own record nothing.
  virtual void record_parts(PartTimes*) {}

  // Return the tensor that the program reads or writes now; it is contiguous, and valid until set again or until the
  // executor ends. A bounded output has the shape of the last run, and its largest shape before the first.
  virtual const DLTensor& input(size_t index) const = 0;
  virtual const DLTensor& output(size_t index) const = 0;
  // Whether the last run succeeded and wrote the memory that the output has now.
  virtual bool has_output(size_t index) const = 0;

  // Lock it to set tensors and run, if several threads may use the executor.
  runtime::Turn& turn() { return turn_; }

 private:
  runtime::Turn turn_;
};

}  // namespace headrace::executors
