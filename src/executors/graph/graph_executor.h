// The graph executor: runs the steps of one program of an artifact, in order, on memory that was laid out at compile
// time.
#pragma once

#include <headrace/kernel_abi.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/expected.h"
#include "executors/executor.h"
#include "executors/graph/watched_region.h"
#include "executors/message.h"
#include "object/function.h"
#include "runtime/aligned_buffer.h"
#include "runtime/module.h"

namespace headrace::executors {

// The target of an external step: a function with a context of its own that knows its number of arguments, which are
// one DLTensor* for each tensor. It returns null, or the error that it failed with.
struct ExternalFunction {
  Ref<ErrorObj> (*function)(void* self, const RawValue* args, int32_t num_args) = nullptr;
  void* self = nullptr;
};

// The way from a region to its native form.
struct NativeForm {
  std::string backend;                              // whose code the form stands in for
  std::function<std::shared_ptr<Executor>()> make;  // on the pool of the caller
  std::optional<Refusal> missing = {};              // why the backend's code cannot be called
};

// A step's target: `kernel` for a KernelCall, `external` for an ExternalCall, one of the three for a RegionCall unless
// its backend's code is missing, none for a copy.
struct Callee {
  hr_kernel kernel = nullptr;
  runtime::ModuleKernel module_kernel = {};
  ExternalFunction external = {};
  const NativeForm* native = nullptr;  // set for a RegionCall whose native form may run
  // For a RegionCall: its backend, and whether the file has its native form.
  std::string_view backend = {};
  bool has_native_form = false;
};

// The data that a program borrows from the artifact that it belongs to. All of it outlives the executor.
struct GraphParts {
  const artifact::Program& program;           // keeps the rules of artifact/check_manifest.h; all of it lies on the CPU
  std::span<const Callee> callees;            // one per step
  std::span<const std::byte* const> weights;  // the start of each weight
  double region_timeout_seconds = 0;          // see ExecutorOptions
  std::shared_ptr<const void> owner = {};     // keeps the callees for regions that do not return in time
};

class GraphExecutor final : public Executor {
 public:
  // UserError when there is not enough memory.
  GraphExecutor(const GraphParts& parts, std::shared_ptr<runtime::ThreadPool> pool);

  const std::vector<artifact::TensorSpec>& inputs() const override { return program_.inputs; }
  const std::vector<artifact::TensorSpec>& outputs() const override { return program_.outputs; }
  const std::vector<artifact::BoundParam>& bound_params() const override { return program_.bound_params; }
  int32_t num_threads() const override { return pool_->num_workers(); }
  size_t num_steps() const override { return calls_.size(); }
  std::span<const artifact::Step> steps() const override { return program_.graph.steps; }
  Metrics metrics() const override;
  void add_memory(MemoryUse& memory) const override;
  std::vector<FallbackEvent> fallbacks() const override;

  Status set_input(size_t index, const DLTensor& tensor) noexcept override;
  Status bind_input(size_t index, const DLTensor& tensor) noexcept override;
  Status give_input(size_t index, const DLTensor& tensor) noexcept override;
  Status bind_output(size_t index, const DLTensor& tensor) noexcept override;
  Status run(std::span<uint64_t> step_nanoseconds = {}) noexcept override;
  void record_parts(PartTimes* parts) override;

  const DLTensor& input(size_t index) const override { return inputs_[index].tensor; }
  const DLTensor& output(size_t index) const override { return outputs_[index].tensor; }
  bool has_output(size_t index) const override { return outputs_[index].is_set; }

 private:
  // An input or output: its tensor, the executor's own memory for it, and the views that share its memory.
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
    const artifact::StepAction* action;
    Callee callee;
    std::shared_ptr<Executor> native;        // set once a region has fallen back
    uint64_t native_memory = 0;              // memory_ when the native form was bound; 0: never
    std::unique_ptr<WatchedRegion> watched;  // set for a region with a time limit
    size_t first_arg;                        // in args_ and values_
    int32_t num_args;
    size_t copy_nbytes;
  };

  void make_ports(std::vector<Port>& ports, const std::vector<artifact::TensorSpec>& specs, std::byte* memory);
  void make_views(std::span<const std::byte* const> weights);
  void make_calls(std::span<const Callee> callees);
  void watch_regions(const GraphParts& parts);
  void make_env();
  void point(Port& port, void* data);
  void copy_in(size_t index, const DLTensor& tensor) noexcept;
  const Port* find_overlap() const noexcept;
  Status check_ready() noexcept;
  Status run_calls() noexcept;
  Status run_timed(std::span<uint64_t> step_nanoseconds) noexcept;
  Status fit_outputs() noexcept;
  int32_t run_call(Call& call) noexcept;
  int32_t run_external(const Call& call) noexcept;
  int32_t write_error() noexcept;
  int32_t run_region(Call& call) noexcept;
  int32_t run_backend(const Call& call) noexcept;
  int32_t run_watched(const Call& call) noexcept;
  Status bind_native(Call& call) noexcept;
  int32_t run_native(Call& call) noexcept;
  void fall_back(Call& call, hr_reason reason, const std::string& message);
  bool is_interrupted() const noexcept;
  void name_backend(const Call& call) noexcept;
  Status failure(size_t step, int32_t code) noexcept;
  Status check_port(std::string_view what, const std::vector<artifact::TensorSpec>& specs, size_t index,
                    const DLTensor& tensor, bool is_direct) noexcept;
  bool fit(const artifact::BoundedOutput& bounded) noexcept;

  const artifact::Program& program_;
  std::shared_ptr<runtime::ThreadPool> pool_;
  runtime::AlignedBuffer arena_;
  runtime::AlignedBuffer port_memory_;
  runtime::AlignedBuffer workspace_;
  bool is_ready_ = false;  // all inputs are set and no memory overlaps; checked once after memory was given
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::vector<std::vector<int64_t>> view_strides_;  // strides by entry
  std::vector<DLTensor> views_;                     // one per entry
  std::vector<DLTensor*> args_;                     // arguments of all calls
  std::vector<RawValue> values_;                    // `args_` as values, for external functions
  uint64_t memory_ = 1;                             // grows when a port gets other memory
  std::vector<Call> calls_;
  Message message_;
  Ref<ErrorObj> error_;  // error of the external call that ended the run
  hr_kernel_env env_{};
  PartTimes* parts_ = nullptr;
  double region_timeout_seconds_;
  std::atomic<uint64_t> runs_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  mutable std::mutex fallbacks_mutex_;
  std::vector<FallbackEvent> fallbacks_;
};

}  // namespace headrace::executors
