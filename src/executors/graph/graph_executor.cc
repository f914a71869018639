#include "executors/graph/graph_executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "base/utf8.h"
#include "executors/part_times.h"
#include "executors/tensor_check.h"
#include "object/foreign_error.h"
#include "tensor/strided_copy.h"
#include "tensor/strides.h"

namespace headrace::executors {
namespace {

using artifact::Place;
using artifact::TensorSpec;

int64_t aligned_nbytes(const TensorSpec& spec) {
  // The sizes were checked with the manifest.
  const int64_t nbytes = artifact::tensor_nbytes(spec.dtype, spec.shape).value();
  return (nbytes + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT;
}

int64_t total_nbytes(const std::vector<TensorSpec>& specs) {
  int64_t total = 0;
  for (const TensorSpec& spec : specs) total += aligned_nbytes(spec);
  return total;
}

DLTensor make_tensor(void* data, DataType dtype, const std::vector<int64_t>& shape, std::vector<int64_t>& strides) {
  // DLPack has no const; these pointers are only read through.
  return {.data = data,
          .device = {kDLCPU, 0},
          .ndim = static_cast<int32_t>(shape.size()),
          .dtype = dtype.raw(),
          .shape = const_cast<int64_t*>(shape.data()),
          .strides = strides.data(),
          .byte_offset = 0};
}

void* first_element(const DLTensor& tensor) { return static_cast<std::byte*>(tensor.data) + tensor.byte_offset; }

RawValue as_argument(DLTensor* tensor) noexcept {
  RawValue value;
  value.type_index = type_index::kDLTensorPtr;
  value.v.v_ptr = tensor;
  return value;
}

constexpr std::string_view kNoReason = "it does not say why";

// Calls the code of a region's backend; only a function leaves an error. `values` are the tensors of `args`.
int32_t call_code(const Callee& callee, const hr_kernel_env& env, DLTensor* const* args, const RawValue* values,
                  int32_t num_args, Ref<ErrorObj>& error) noexcept {
  if (callee.kernel != nullptr) return callee.kernel(&env, args);
  if (callee.module_kernel) return callee.module_kernel.run(callee.module_kernel.self, &env, args, num_args);
  error = callee.external.function(callee.external.self, values, num_args);
  return error ? -1 : 0;
}

}  // namespace

GraphExecutor::GraphExecutor(const GraphParts& parts, std::shared_ptr<runtime::ThreadPool> pool)
    : program_(parts.program),
      pool_(std::move(pool)),
      arena_(artifact::arena_bytes(parts.program.memory)),
      port_memory_(total_nbytes(parts.program.inputs) + total_nbytes(parts.program.outputs)),
      workspace_(parts.program.memory.workspace_bytes * pool_->num_workers()),
      region_timeout_seconds_(parts.region_timeout_seconds) {
  HEADRACE_CHECK(program_.memory.arenas.size() <= 1, "a graph executor of {} arenas", program_.memory.arenas.size());
  make_ports(inputs_, program_.inputs, port_memory_.data());
  make_ports(outputs_, program_.outputs, port_memory_.data() + total_nbytes(program_.inputs));
  make_views(parts.weights);
  make_calls(parts.callees);
  if (region_timeout_seconds_ > 0) watch_regions(parts);
  make_env();
}

Metrics GraphExecutor::metrics() const {
  const std::scoped_lock lock(fallbacks_mutex_);
  return {.runs = runs_.load(std::memory_order_relaxed),
          .failures = failures_.load(std::memory_order_relaxed),
          .fallbacks = fallbacks_.size()};
}

void GraphExecutor::add_memory(MemoryUse& memory) const {
  memory.working_bytes += arena_.nbytes() + workspace_.nbytes();
  for (size_t i = 0; i < views_.size(); ++i) {
    const artifact::Entry& entry = program_.graph.entries[i];
    if (entry.place != Place::kWeight) continue;
    const int64_t nbytes = artifact::view_nbytes(entry.dtype, entry.shape, entry.strides).value_or(0);
    const std::byte* first = static_cast<const std::byte*>(views_[i].data) - entry.byte_offset;
    memory.add_weight({first, static_cast<size_t>(entry.byte_offset + nbytes)});
  }
}

std::vector<FallbackEvent> GraphExecutor::fallbacks() const {
  const std::scoped_lock lock(fallbacks_mutex_);
  return fallbacks_;
}

void GraphExecutor::make_ports(std::vector<Port>& ports, const std::vector<TensorSpec>& specs, std::byte* memory) {
  ports.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    Port& port = ports[i];
    port.shape = specs[i].shape;
    port.strides = dense_strides(specs[i].shape);
    port.own_memory = memory;
    port.nbytes = static_cast<size_t>(artifact::tensor_nbytes(specs[i].dtype, specs[i].shape).value());
    port.tensor = make_tensor(memory, specs[i].dtype, port.shape, port.strides);
    memory += aligned_nbytes(specs[i]);
  }
}

void GraphExecutor::make_views(std::span<const std::byte* const> weights) {
  const std::vector<artifact::Entry>& entries = program_.graph.entries;
  views_.resize(entries.size());
  view_strides_.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const artifact::Entry& entry = entries[i];
    const auto index = static_cast<size_t>(entry.index);
    std::byte* base = nullptr;
    switch (entry.place) {
      case Place::kStorage:
        base = arena_.data() + program_.memory.storages[index].offset;
        break;
      case Place::kWeight:
        base = const_cast<std::byte*>(weights[index]);
        break;
      case Place::kInput:
        base = static_cast<std::byte*>(inputs_[index].own_memory);
        inputs_[index].views.push_back(i);
        break;
      case Place::kOutput:
        base = static_cast<std::byte*>(outputs_[index].own_memory);
        outputs_[index].views.push_back(i);
        break;
    }
    view_strides_[i] = entry.strides.empty() ? dense_strides(entry.shape) : entry.strides;
    views_[i] = make_tensor(base + entry.byte_offset, entry.dtype, entry.shape, view_strides_[i]);
  }
}

void GraphExecutor::make_calls(std::span<const Callee> callees) {
  const std::vector<artifact::Step>& steps = program_.graph.steps;
  HEADRACE_CHECK(callees.size() == steps.size(), "{} callees for {} steps", callees.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const artifact::Step& step = steps[i];
    Call call{.action = &step.action,
              .callee = callees[i],
              .native = {},
              .native_memory = 0,
              .watched = {},
              .first_arg = args_.size(),
              .num_args = static_cast<int32_t>(step.args.size()),
              .copy_nbytes = 0};
    for (int32_t entry : step.args) {
      args_.push_back(&views_[static_cast<size_t>(entry)]);
      values_.push_back(as_argument(args_.back()));
    }
    if (std::holds_alternative<artifact::CopyStep>(step.action)) {
      const artifact::Entry& src = program_.graph.entries[static_cast<size_t>(step.args[0])];
      call.copy_nbytes = static_cast<size_t>(artifact::tensor_nbytes(src.dtype, src.shape).value());
    }
    if (call.callee.native != nullptr && call.callee.native->missing)
      fall_back(call, call.callee.native->missing->code, call.callee.native->missing->message);
    calls_.push_back(std::move(call));
  }
}

void GraphExecutor::make_env() {
  env_ = {.size = sizeof(hr_kernel_env),
          .version = HR_KERNEL_ABI_VERSION,
          .workspace = workspace_.data(),
          .workspace_size = static_cast<uint64_t>(program_.memory.workspace_bytes),
          .parallel_for = &runtime::ThreadPool::parallel_for_entry,
          .launch = nullptr,
          .stream = nullptr,
          .worker_index = 0,
          .num_workers = pool_->num_workers(),
          .message = message_.data(),
          .message_size = message_.size(),
          .host = pool_.get()};
}

void GraphExecutor::record_parts(PartTimes* parts) {
  parts_ = nullptr;
  make_env();
  if (parts != nullptr) parts->attach(*pool_, env_);
  parts_ = parts;
}

Status GraphExecutor::check_port(std::string_view what, const std::vector<TensorSpec>& specs, size_t index,
                                 const DLTensor& tensor, bool is_direct) noexcept {
  message_.clear();
  std::string_view name;
  bool fits = index < specs.size();
  if (fits) {
    name = specs[index].name;
    fits = check_tensor(what, specs[index], tensor, is_direct ? Access::direct : Access::copied, message_);
  } else {
    message_.write("there is no {} {}: the program has {}", what, index, specs.size());
  }
  if (fits) return {};
  return {.code = HR_REASON_BAD_TENSOR, .reason = HR_REASON_BAD_TENSOR, .op = name, .message = message_.view()};
}

// Makes the port's views point to `data`.
void GraphExecutor::point(Port& port, void* data) {
  if (port.tensor.data != data) {
    is_ready_ = port.is_set = false;
    ++memory_;
  }
  port.tensor.data = data;
  for (size_t view : port.views)
    views_[view].data = static_cast<std::byte*>(data) + program_.graph.entries[view].byte_offset;
}

Status GraphExecutor::set_input(size_t index, const DLTensor& tensor) noexcept {
  if (Status status = check_port("input", program_.inputs, index, tensor, false); !status.ok()) return status;
  copy_in(index, tensor);
  return {};
}

// Copies a tensor that was checked to the port's own memory.
void GraphExecutor::copy_in(size_t index, const DLTensor& tensor) noexcept {
  Port& port = inputs_[index];
  if (tensor.strides == nullptr || is_dense(port.shape, {tensor.strides, static_cast<size_t>(tensor.ndim)})) {
    if (port.nbytes > 0) std::memcpy(port.own_memory, first_element(tensor), port.nbytes);
  } else {
    copy_strided(tensor, program_.inputs[index].dtype.bytes(), static_cast<std::byte*>(port.own_memory));
  }
  point(port, port.own_memory);
  port.is_set = true;
}

Status GraphExecutor::bind_input(size_t index, const DLTensor& tensor) noexcept {
  if (Status status = check_port("input", program_.inputs, index, tensor, true); !status.ok()) return status;
  point(inputs_[index], first_element(tensor));
  inputs_[index].is_set = true;
  return {};
}

Status GraphExecutor::give_input(size_t index, const DLTensor& tensor) noexcept {
  if (Status status = check_port("input", program_.inputs, index, tensor, false); !status.ok()) return status;
  if (is_direct(program_.inputs[index], tensor)) {
    point(inputs_[index], first_element(tensor));
    inputs_[index].is_set = true;
  } else {
    copy_in(index, tensor);
  }
  return {};
}

Status GraphExecutor::bind_output(size_t index, const DLTensor& tensor) noexcept {
  if (Status status = check_port("output", program_.outputs, index, tensor, true); !status.ok()) return status;
  point(outputs_[index], first_element(tensor));
  return {};
}

// Returns an output whose memory overlaps an input's or another output's; null when there is none. Kernels are compiled
// for memory that does not overlap.
const GraphExecutor::Port* GraphExecutor::find_overlap() const noexcept {
  const auto shares = [](const Port& a, const Port& b) {
    const auto begin_a = reinterpret_cast<uintptr_t>(a.tensor.data),
               begin_b = reinterpret_cast<uintptr_t>(b.tensor.data);
    return a.nbytes > 0 && b.nbytes > 0 && begin_a < begin_b + b.nbytes && begin_b < begin_a + a.nbytes;
  };
  for (size_t i = 0; i < outputs_.size(); ++i) {
    for (const Port& input : inputs_) {
      if (shares(outputs_[i], input)) return &outputs_[i];
    }
    for (size_t k = 0; k < i; ++k) {
      if (shares(outputs_[i], outputs_[k])) return &outputs_[i];
    }
  }
  return nullptr;
}

// Carries out one step; the only place that knows what each action does.
int32_t GraphExecutor::run_call(Call& call) noexcept {
  DLTensor* const* args = args_.data() + call.first_arg;
  struct Act {
    GraphExecutor& self;
    Call& call;
    DLTensor* const* args;
    int32_t operator()(const artifact::KernelCall&) const { return call.callee.kernel(&self.env_, args); }
    int32_t operator()(const artifact::ExternalCall&) const { return self.run_external(call); }
    int32_t operator()(const artifact::RegionCall&) const { return self.run_region(call); }
    int32_t operator()(const artifact::CopyStep&) const {
      if (call.copy_nbytes > 0) std::memmove(args[1]->data, args[0]->data, call.copy_nbytes);
      return 0;
    }
  };
  return std::visit(Act{*this, call, args}, *call.action);
}

int32_t GraphExecutor::run_external(const Call& call) noexcept {
  const ExternalFunction& external = call.callee.external;
  error_ = external.function(external.self, values_.data() + call.first_arg, call.num_args);
  return error_ ? write_error() : 0;
}

// Writes the message of an external call's error; returns the code of the call.
int32_t GraphExecutor::write_error() noexcept {
  // An exception of another language says little without its name: "KeyError: 'x'".
  const bool is_ours = error_->kind.empty() || error_->kind == "UserError" || error_->kind == "InternalError";
  const std::string_view kind = is_ours ? std::string_view() : error_->kind, colon = is_ours ? "" : ": ";
  message_.write("{}{}{}", kind, colon, std::string_view(error_->message));
  return -1;
}

void GraphExecutor::watch_regions(const GraphParts& parts) {
  for (size_t i = 0; i < calls_.size(); ++i) {
    Call& call = calls_[i];
    if (!std::holds_alternative<artifact::RegionCall>(*call.action) || call.native != nullptr) continue;
    const auto run = [callee = call.callee, values = std::vector<RawValue>(static_cast<size_t>(call.num_args))](
                         const hr_kernel_env& env, DLTensor* const* args, RegionOutcome& outcome) mutable {
      for (size_t k = 0; k < values.size(); ++k) values[k] = as_argument(args[k]);
      outcome.code = call_code(callee, env, args, values.data(), static_cast<int32_t>(values.size()), outcome.error);
    };
    call.watched = std::make_unique<WatchedRegion>(
        WatchedCode{
            .run = run, .owner = parts.owner, .pool = pool_, .workspace_bytes = program_.memory.workspace_bytes},
        std::span(args_.data() + call.first_arg, static_cast<size_t>(call.num_args)),
        static_cast<size_t>(program_.graph.steps[i].num_outputs));
  }
}

int32_t GraphExecutor::run_watched(const Call& call) noexcept {
  const std::chrono::duration<double> limit(region_timeout_seconds_);
  std::optional<RegionOutcome> outcome =
      call.watched->run({args_.data() + call.first_arg, static_cast<size_t>(call.num_args)},
                        std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
  if (!outcome) {
    message_.write("the backend's code did not return within {} s, and is not called again", region_timeout_seconds_);
    return -1;
  }
  message_ = outcome->message;
  error_ = std::move(outcome->error);
  return error_ ? write_error() : outcome->code;
}

int32_t GraphExecutor::run_backend(const Call& call) noexcept {
  if (call.watched != nullptr) return run_watched(call);
  const int32_t code = call_code(call.callee, env_, args_.data() + call.first_arg, values_.data() + call.first_arg,
                                 call.num_args, error_);
  return error_ ? write_error() : code;
}

// A backend that failed once is not called again: the native form computes this run and all later ones.
int32_t GraphExecutor::run_region(Call& call) noexcept {
  if (call.native != nullptr) return run_native(call);
  const int32_t code = run_backend(call);
  // A user who interrupts a run did not ask for another way to finish it.
  if (code == 0 || call.callee.native == nullptr || is_interrupted()) return code;
  try {
    message_.end();
    const std::string_view why = message_.view();
    fall_back(call, HR_REASON_BACKEND_FAILED, std::string(why.empty() ? kNoReason : why));
  } catch (const std::exception& error) {  // such as one of too little memory: the caller sees both
    const Message why = message_;
    message_.write("{}; and the region's native form cannot be made: {}", why.view().empty() ? kNoReason : why.view(),
                   error.what());
    return code;
  }
  message_.clear();
  error_ = {};
  return run_native(call);
}

// Makes the region's native form, which `call` runs from now on, and reports it.
void GraphExecutor::fall_back(Call& call, hr_reason reason, const std::string& message) {
  call.native = call.callee.native->make();
  const std::scoped_lock lock(fallbacks_mutex_);
  fallbacks_.push_back({.region = artifact::callee_of(*call.action),
                        .backend = call.callee.native->backend,
                        .reason = reason,
                        .message = as_utf8(message),  // a library's, in any encoding
                        .run = runs_.load(std::memory_order_relaxed)});
}

// Makes the native form read and write the region's tensors. Their memory changes only with that of a port.
Status GraphExecutor::bind_native(Call& call) noexcept {
  Executor& native = *call.native;
  DLTensor* const* args = args_.data() + call.first_arg;
  const size_t num_inputs = native.inputs().size();
  Status status;
  for (size_t i = 0; i < static_cast<size_t>(call.num_args) && status.ok(); ++i)
    status = i < num_inputs ? native.bind_input(i, *args[i]) : native.bind_output(i - num_inputs, *args[i]);
  if (status.ok()) call.native_memory = memory_;
  return status;
}

int32_t GraphExecutor::run_native(Call& call) noexcept {
  Status status;
  if (call.native_memory != memory_) status = bind_native(call);
  if (status.ok()) status = call.native->run();
  if (!status.ok()) message_.write("{}", status.message);
  return status.code;
}

bool GraphExecutor::is_interrupted() const noexcept { return error_ && is_interrupt_kind(error_->kind); }

// Makes the message about a region that its backend failed to compute name both, and the fallback that would help.
void GraphExecutor::name_backend(const Call& call) noexcept {
  const Message why = message_;
  const std::string_view said = why.view(), backend = call.callee.backend, region = artifact::callee_of(*call.action);
  const bool has_hint = call.callee.has_native_form && call.callee.native == nullptr;
  const std::string_view hint = has_hint ? "; with the fallback 'native', native code computes the region" : "";
  if (said.find(backend) != std::string_view::npos && said.find(region) != std::string_view::npos) {
    message_.write("{}{}", said, hint);
  } else {
    message_.write("the backend '{}' failed in the region '{}': {}{}", backend, region, said.empty() ? kNoReason : said,
                   hint);
  }
  if (!error_) return;
  try {  // the exception is raised again with these words
    auto named = make_object<ErrorObj>();
    named->kind = error_->kind;
    named->message = message_.view();
    named->payload = error_->payload;
    error_ = named;
  } catch (...) {  // without memory it stays as it is
  }
}

Status GraphExecutor::failure(size_t step, int32_t code) noexcept {
  message_.end();
  const artifact::Step& failed = program_.graph.steps[step];
  const Call& call = calls_[step];
  const bool is_of_backend = !call.callee.backend.empty() && call.native == nullptr;
  if (is_of_backend && !is_interrupted()) name_backend(call);
  const std::string_view message = message_.view().empty() ? "a kernel failed without saying why" : message_.view();
  return {.code = code,
          .reason = is_of_backend ? HR_REASON_BACKEND_FAILED : HR_REASON_KERNEL_FAILED,
          .op = failed.op.empty() ? std::string_view(artifact::callee_of(failed.action)) : std::string_view(failed.op),
          .message = message,
          .error = std::move(error_)};
}

// Gives a bounded output its actual shape, with its elements dense at the start; returns false when the extent exceeds
// its bound.
bool GraphExecutor::fit(const artifact::BoundedOutput& bounded) noexcept {
  Port& port = outputs_[static_cast<size_t>(bounded.output)];
  const TensorSpec& spec = program_.outputs[static_cast<size_t>(bounded.output)];
  const auto axis = static_cast<size_t>(bounded.axis);
  int64_t extent = 0;
  std::memcpy(&extent, views_[static_cast<size_t>(bounded.extent)].data, sizeof extent);
  if (extent < 0 || extent > spec.shape[axis]) return false;
  size_t outer = 1, inner = spec.dtype.bytes();
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(spec.shape[i]);
  for (size_t i = axis + 1; i < spec.shape.size(); ++i) inner *= static_cast<size_t>(spec.shape[i]);
  const size_t from = static_cast<size_t>(spec.shape[axis]) * inner, to = static_cast<size_t>(extent) * inner;
  auto* data = static_cast<std::byte*>(port.tensor.data);
  for (size_t i = 1; i < outer && to > 0; ++i) std::memmove(data + i * to, data + i * from, to);
  port.shape[axis] = extent;
  for (size_t i = port.shape.size(); i-- > 1;) port.strides[i - 1] = port.strides[i] * port.shape[i];
  return true;
}

// Checks what holds until other memory is given: every input was set, and no output overlaps.
Status GraphExecutor::check_ready() noexcept {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_set) continue;
    return {.code = HR_REASON_INPUT_MISSING,
            .reason = HR_REASON_INPUT_MISSING,
            .op = program_.inputs[i].name,
            .message = "the input was never set; set every input before the run"};
  }
  if (const Port* output = find_overlap()) {
    return {.code = HR_REASON_BAD_TENSOR,
            .reason = HR_REASON_BAD_TENSOR,
            .op = program_.outputs[static_cast<size_t>(output - outputs_.data())].name,
            .message = "the output shares memory with an input or another output; give it memory of its own"};
  }
  is_ready_ = true;
  return {};
}

Status GraphExecutor::run_calls() noexcept {
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (const int32_t code = run_call(calls_[i]); code != 0) [[unlikely]]
      return failure(i, code);
  }
  return {};
}

Status GraphExecutor::run_timed(std::span<uint64_t> step_nanoseconds) noexcept {
  Status status;
  uint64_t begin = now_nanoseconds();
  if (parts_ != nullptr) parts_->begin_run(begin);
  for (size_t i = 0; i < calls_.size() && status.ok(); ++i) {
    if (parts_ != nullptr) parts_->begin_step(i);
    if (const int32_t code = run_call(calls_[i]); code != 0) status = failure(i, code);
    const uint64_t end = now_nanoseconds();
    step_nanoseconds[i] = end - begin;
    begin = end;
  }
  if (parts_ != nullptr) parts_->end_run();
  return status;
}

Status GraphExecutor::fit_outputs() noexcept {
  for (const artifact::BoundedOutput& bounded : program_.bounded_outputs) {
    if (fit(bounded)) continue;
    return {.code = HR_REASON_KERNEL_FAILED,
            .reason = HR_REASON_KERNEL_FAILED,
            .op = program_.outputs[static_cast<size_t>(bounded.output)].name,
            .message = "the output's extent is not within its bound"};
  }
  return {};
}

Status GraphExecutor::run(std::span<uint64_t> step_nanoseconds) noexcept {
  const runtime::ThreadPool::Hold hold(*pool_);
  runs_.fetch_add(1, std::memory_order_relaxed);
  message_.clear();
  for (Port& output : outputs_) output.is_set = false;
  Status status;
  if (!is_ready_) status = check_ready();
  if (status.ok()) status = step_nanoseconds.size() == calls_.size() ? run_timed(step_nanoseconds) : run_calls();
  if (status.ok()) status = fit_outputs();
  if (!status.ok()) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  for (Port& output : outputs_) output.is_set = true;
  return {};
}

}  // namespace headrace::executors
