// Runs a graph program: the steps of one program of an artifact, in order, on memory that was laid out at compile time.
#pragma once

#include <dlpack/dlpack.h>
#include <headrace/kernel_abi.h>

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "object/function.h"
#include "runtime/aligned_buffer.h"
#include "runtime/thread_pool.h"

namespace headrace::executors {

// The target of an external step: a function with a context of its own that knows its number of arguments. It returns
// null, or the error that it failed with.
struct ExternalCall {
  Ref<ErrorObj> (*function)(void* self, DLTensor* const* args, int32_t num_args) = nullptr;
  void* self = nullptr;
};

// A step's target: `kernel` for kKernel, `external` for kExternal, neither for kCopy.
struct Callee {
  hr_kernel kernel = nullptr;
  ExternalCall external;
};

// How a run ended. The views are valid until the runner's next run.
struct RunStatus {
  int32_t code = 0;  // 0: ok; otherwise what the kernel returned, or the reason
  hr_reason reason = HR_REASON_NONE;
  std::string_view op;       // the step's name in the model, or the input's
  std::string_view message;  // the kernel's sentence, or ours
  Ref<ErrorObj> error = {};  // the error of an external call; null for other failures
};
// Throws a UserError with the op's name for a run that failed, or the exception of another language that ended it.
void throw_if_failed(const RunStatus& status);

// One run at a time; different runners of one program run side by side. All memory is taken at creation: run(),
// set_input() and the zero-copy setters allocate nothing.
class GraphRunner {
 public:
  // Makes a runner. `program` keeps the rules of artifact/check_manifest.h and outlives the runner, as do the callees
  // (one per step) and `weights` (start of each weight). UserError when there is not enough memory.
  GraphRunner(const artifact::Program& program, std::span<const Callee> callees,
              std::span<const std::byte* const> weights, std::shared_ptr<runtime::ThreadPool> pool);
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  const artifact::Program& program() const { return program_; }
  int32_t num_threads() const { return pool_->num_workers(); }

  // Copies `tensor` into the runner's memory. Throws UserError when `index`, device, dtype or shape is not the
  // program's; strides may be any.
  void set_input(size_t index, const DLTensor& tensor);
  // Makes the program read or write `tensor` itself until set again. Checks it as set_input does; it must also be
  // contiguous and aligned to its element. The memory is the caller's. An output's memory must not overlap an input's
  // or another output's, which run() checks.
  void set_input_zero_copy(size_t index, const DLTensor& tensor);
  void set_output_zero_copy(size_t index, const DLTensor& tensor);

  // Return the tensor that the program reads or writes now; it is contiguous, and valid until set again or until the
  // runner ends. A bounded output has the shape of the last run, and its largest shape before the first.
  const DLTensor& input(size_t index) const { return inputs_[index].tensor; }
  const DLTensor& output(size_t index) const { return outputs_[index].tensor; }
  // Whether the last run succeeded and wrote the memory that the output has now.
  bool has_output(size_t index) const { return outputs_[index].is_set; }

  // Check a tensor for the setters: UserError when it does not match `specs[index]`. check_direct also requires it to
  // be contiguous and aligned. `what` is "input" or "output".
  static void check_tensor(const char* what, const std::vector<artifact::TensorSpec>& specs, size_t index,
                           const DLTensor& tensor);
  static void check_direct(const char* what, const std::vector<artifact::TensorSpec>& specs, size_t index,
                           const DLTensor& tensor);

  // Runs all steps. Fails with INPUT_MISSING when an input was never set, BAD_TENSOR when an output shares memory with
  // an input or another output, KERNEL_FAILED when a step says so or gives a bounded output an extent past its bound.
  // Given a number for each step, it writes how long the step took there.
  RunStatus run(std::span<uint64_t> step_nanoseconds = {}) noexcept;

 private:
  // An input or output: its tensor, the runner's own memory for it, and the views that share its memory.
  struct Port {
    DLTensor tensor{};
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    void* own_memory = nullptr;
    size_t nbytes = 0;
    bool is_set = false;        // an input: since creation; an output: by the last run
    std::vector<size_t> views;  // entries
  };
  struct Call {
    artifact::StepKind kind;
    Callee callee;
    size_t first_arg;  // in args_
    int32_t num_args;
    size_t copy_nbytes;
  };

  void make_ports(std::vector<Port>& ports, const std::vector<artifact::TensorSpec>& specs, std::byte* memory);
  void make_views(std::span<const std::byte* const> weights);
  void make_calls(std::span<const Callee> callees);
  void make_env();
  void bind(Port& port, void* data);
  const Port* find_overlap() const noexcept;
  int32_t run_call(const Call& call) noexcept;
  int32_t run_external(const Call& call) noexcept;
  RunStatus failure(size_t step, int32_t code) noexcept;
  bool fit(const artifact::BoundedOutput& bounded) noexcept;

  const artifact::Program& program_;
  std::shared_ptr<runtime::ThreadPool> pool_;
  runtime::AlignedBuffer arena_;
  runtime::AlignedBuffer port_memory_;
  runtime::AlignedBuffer workspace_;
  bool is_overlap_checked_ = false;  // since memory was last given
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::vector<std::vector<int64_t>> view_strides_;  // of entries
  std::vector<DLTensor> views_;                     // one per entry
  std::vector<DLTensor*> args_;                     // of all calls
  std::vector<Call> calls_;
  std::array<char, 512> message_{};
  Ref<ErrorObj> error_;  // of the external call that ended the run
  hr_kernel_env env_{};
};

}  // namespace headrace::executors
