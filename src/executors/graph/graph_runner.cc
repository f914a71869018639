#include "executors/graph/graph_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "object/foreign_error.h"
#include "tensor/strided_copy.h"
#include "tensor/strides.h"

namespace headrace::executors {
namespace {

using artifact::Place;
using artifact::StepKind;
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

std::span<const int64_t> shape_of(const DLTensor& tensor) { return {tensor.shape, static_cast<size_t>(tensor.ndim)}; }

std::span<const int64_t> strides_of(const DLTensor& tensor) {
  return {tensor.strides, static_cast<size_t>(tensor.ndim)};
}

void* first_element(const DLTensor& tensor) { return static_cast<std::byte*>(tensor.data) + tensor.byte_offset; }

template <typename... Args>
[[noreturn]] void refuse(const char* what, const TensorSpec& spec, fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format("{} '{}' {}", what, spec.name, fmt::format(format, std::forward<Args>(args)...)),
                  {.op = spec.name, .place = ""});
}

// Whether all elements lie in the address space. Strides count elements; null means dense. Allocates nothing.
bool is_in_address_space(const DLTensor& tensor, DataType dtype) {
  using Wide = __int128;  // holds the product of a stride and an extent
  constexpr Wide kEnd = Wide{1} << 64;
  Wide first = 0, last = 0, dense = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return true;
  }
  for (int32_t i = tensor.ndim; i-- > 0;) {
    const Wide stride = tensor.strides == nullptr ? dense : Wide{tensor.strides[i]};
    const Wide reach = stride * (tensor.shape[i] - 1);
    if (reach < -kEnd || reach > kEnd) return false;
    (reach < 0 ? first : last) += reach;
    dense *= tensor.shape[i];
  }
  const auto item = static_cast<Wide>(dtype.bytes());
  const Wide start = Wide{reinterpret_cast<uintptr_t>(tensor.data)} + Wide{tensor.byte_offset};
  return start + first * item >= 0 && start + (last + 1) * item <= kEnd;
}

uint64_t now_nanoseconds() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace

GraphRunner::GraphRunner(const artifact::Program& program, std::span<const Callee> callees,
                         std::span<const std::byte* const> weights, std::shared_ptr<runtime::ThreadPool> pool)
    : program_(program),
      pool_(std::move(pool)),
      arena_(program.memory.arena_bytes),
      port_memory_(total_nbytes(program.inputs) + total_nbytes(program.outputs)),
      workspace_(program.memory.workspace_bytes * pool_->num_workers()) {
  make_ports(inputs_, program.inputs, port_memory_.data());
  make_ports(outputs_, program.outputs, port_memory_.data() + total_nbytes(program.inputs));
  make_views(weights);
  make_calls(callees);
  make_env();
}

void GraphRunner::make_ports(std::vector<Port>& ports, const std::vector<TensorSpec>& specs, std::byte* memory) {
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

void GraphRunner::make_views(std::span<const std::byte* const> weights) {
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

void GraphRunner::make_calls(std::span<const Callee> callees) {
  const std::vector<artifact::Step>& steps = program_.graph.steps;
  HEADRACE_CHECK(callees.size() == steps.size(), "{} callees for {} steps", callees.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const artifact::Step& step = steps[i];
    Call call{.kind = step.kind,
              .callee = callees[i],
              .first_arg = args_.size(),
              .num_args = static_cast<int32_t>(step.args.size()),
              .copy_nbytes = 0};
    for (int32_t entry : step.args) args_.push_back(&views_[static_cast<size_t>(entry)]);
    if (step.kind == StepKind::kCopy) {
      const artifact::Entry& src = program_.graph.entries[static_cast<size_t>(step.args[0])];
      call.copy_nbytes = static_cast<size_t>(artifact::tensor_nbytes(src.dtype, src.shape).value());
    }
    calls_.push_back(call);
  }
}

void GraphRunner::make_env() {
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

void GraphRunner::check_tensor(const char* what, const std::vector<TensorSpec>& specs, size_t index,
                               const DLTensor& tensor) {
  if (index >= specs.size()) throw_user_error("there is no {} {}: the program has {}", what, index, specs.size());
  const TensorSpec& spec = specs[index];
  const auto type = static_cast<int>(tensor.device.device_type);
  if (type != kDLCPU) refuse(what, spec, "is on a device of type {}; copy it to the CPU first", type);
  if (tensor.device.device_id != 0)
    refuse(what, spec, "is on device {} of type {}; the CPU is device 0", tensor.device.device_id, type);
  if (DataType(tensor.dtype) != spec.dtype)
    refuse(what, spec, "has dtype {}, the program takes {}", DataType(tensor.dtype), spec.dtype);
  if (tensor.ndim < 0 || static_cast<size_t>(tensor.ndim) != spec.shape.size())
    refuse(what, spec, "has {} dimensions, the program takes ({})", tensor.ndim, fmt::join(spec.shape, ", "));
  if (tensor.shape == nullptr && !spec.shape.empty()) refuse(what, spec, "has no shape (shape is NULL)");
  if (!std::equal(spec.shape.begin(), spec.shape.end(), tensor.shape)) {
    refuse(what, spec, "has shape ({}), the program takes ({})", fmt::join(shape_of(tensor), ", "),
           fmt::join(spec.shape, ", "));
  }
  if (tensor.data == nullptr && aligned_nbytes(spec) > 0) refuse(what, spec, "has no memory (data is NULL)");
  if (!is_in_address_space(tensor, spec.dtype))
    refuse(what, spec, "goes past the end of the address space; check its data, byte_offset and strides");
}

void GraphRunner::check_direct(const char* what, const std::vector<TensorSpec>& specs, size_t index,
                               const DLTensor& tensor) {
  check_tensor(what, specs, index, tensor);
  const TensorSpec& spec = specs[index];
  if (tensor.strides != nullptr && !is_dense(spec.shape, strides_of(tensor)))
    refuse(what, spec, "is not contiguous; pass a contiguous copy");
  const size_t alignment = spec.dtype.element().bytes();
  if (reinterpret_cast<uintptr_t>(first_element(tensor)) % alignment != 0)
    refuse(what, spec, "is not aligned to its element of {} bytes; pass an aligned copy", alignment);
}

void GraphRunner::bind(Port& port, void* data) {
  if (port.tensor.data != data) is_overlap_checked_ = port.is_set = false;
  port.tensor.data = data;
  for (size_t view : port.views)
    views_[view].data = static_cast<std::byte*>(data) + program_.graph.entries[view].byte_offset;
}

void GraphRunner::set_input(size_t index, const DLTensor& tensor) {
  check_tensor("input", program_.inputs, index, tensor);
  Port& port = inputs_[index];
  const TensorSpec& spec = program_.inputs[index];
  const auto nbytes = static_cast<size_t>(artifact::tensor_nbytes(spec.dtype, spec.shape).value());
  if (tensor.strides == nullptr || is_dense(shape_of(tensor), strides_of(tensor))) {
    if (nbytes > 0) std::memcpy(port.own_memory, first_element(tensor), nbytes);
  } else {
    if (spec.dtype.bits() * spec.dtype.lanes() % 8 != 0) {
      refuse("input", spec, "has elements of {}, smaller than a byte, and is not contiguous; pass a contiguous copy",
             spec.dtype);
    }
    copy_strided(tensor, spec.dtype.bytes(), static_cast<std::byte*>(port.own_memory));
  }
  bind(port, port.own_memory);
  port.is_set = true;
}

void GraphRunner::set_input_zero_copy(size_t index, const DLTensor& tensor) {
  check_direct("input", program_.inputs, index, tensor);
  bind(inputs_[index], first_element(tensor));
  inputs_[index].is_set = true;
}

void GraphRunner::set_output_zero_copy(size_t index, const DLTensor& tensor) {
  check_direct("output", program_.outputs, index, tensor);
  bind(outputs_[index], first_element(tensor));
}

// Returns an output whose memory overlaps an input's or another output's; null when there is none. Kernels are compiled
// for memory that does not overlap.
const GraphRunner::Port* GraphRunner::find_overlap() const noexcept {
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

int32_t GraphRunner::run_call(const Call& call) noexcept {
  DLTensor* const* args = args_.data() + call.first_arg;
  switch (call.kind) {
    case StepKind::kKernel:
      return call.callee.kernel(&env_, args);
    case StepKind::kExternal:
      return run_external(call);
    case StepKind::kCopy:
      if (call.copy_nbytes > 0) std::memmove(args[1]->data, args[0]->data, call.copy_nbytes);
      return 0;
  }
  return 0;
}

int32_t GraphRunner::run_external(const Call& call) noexcept {
  const ExternalCall& external = call.callee.external;
  error_ = external.function(external.self, args_.data() + call.first_arg, call.num_args);
  if (!error_) return 0;
  // An exception of another language says little without its name: "KeyError: 'x'".
  const bool is_ours = error_->kind.empty() || error_->kind == "UserError" || error_->kind == "InternalError";
  const std::string_view kind = is_ours ? std::string_view() : error_->kind, colon = is_ours ? "" : ": ";
  const std::string_view parts[] = {kind, colon, error_->message};
  size_t size = 0;
  for (const std::string_view part : parts) size += part.copy(message_.data() + size, message_.size() - 1 - size);
  message_[size] = '\0';
  return -1;
}

void throw_if_failed(const RunStatus& status) {
  if (status.code == 0) return;
  // An exception of another language stays whole, so that its language can raise it again.
  if (status.error && status.error->payload)
    throw ForeignError(status.error->kind, status.error->message, status.error->payload);
  throw UserError(std::string(status.message), {.op = std::string(status.op), .place = ""});
}

RunStatus GraphRunner::failure(size_t step, int32_t code) noexcept {
  // A kernel may have filled the buffer without ending the text.
  message_.back() = '\0';
  const artifact::Step& failed = program_.graph.steps[step];
  std::string_view message = message_.data();
  if (message.empty()) message = "a kernel failed without saying why";
  return {.code = code,
          .reason = HR_REASON_KERNEL_FAILED,
          .op = failed.op.empty() ? std::string_view(failed.callee) : std::string_view(failed.op),
          .message = message,
          .error = std::move(error_)};
}

// Gives a bounded output its actual shape, with its elements dense at the start; returns false when the extent exceeds
// its bound.
bool GraphRunner::fit(const artifact::BoundedOutput& bounded) noexcept {
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

RunStatus GraphRunner::run(std::span<uint64_t> step_nanoseconds) noexcept {
  const runtime::ThreadPool::Hold hold(*pool_);
  message_[0] = '\0';
  for (Port& output : outputs_) output.is_set = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_set) continue;
    return {.code = HR_REASON_INPUT_MISSING,
            .reason = HR_REASON_INPUT_MISSING,
            .op = program_.inputs[i].name,
            .message = "the input was never set; set every input before the run"};
  }
  if (!is_overlap_checked_) {
    if (const Port* output = find_overlap()) {
      return {.code = HR_REASON_BAD_TENSOR,
              .reason = HR_REASON_BAD_TENSOR,
              .op = program_.outputs[static_cast<size_t>(output - outputs_.data())].name,
              .message = "the output shares memory with an input or another output; give it memory of its own"};
    }
    is_overlap_checked_ = true;
  }
  const bool is_timed = step_nanoseconds.size() == calls_.size();
  uint64_t begin = is_timed ? now_nanoseconds() : 0;
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (const int32_t code = run_call(calls_[i]); code != 0) [[unlikely]]
      return failure(i, code);
    if (!is_timed) continue;
    const uint64_t end = now_nanoseconds();
    step_nanoseconds[i] = end - begin;
    begin = end;
  }
  for (const artifact::BoundedOutput& bounded : program_.bounded_outputs) {
    if (fit(bounded)) continue;
    return {.code = HR_REASON_KERNEL_FAILED,
            .reason = HR_REASON_KERNEL_FAILED,
            .op = program_.outputs[static_cast<size_t>(bounded.output)].name,
            .message = "the output's extent is not within its bound"};
  }
  for (Port& output : outputs_) output.is_set = true;
  return {};
}

}  // namespace headrace::executors
