#include "load/run.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "executors/tensor_check.h"

namespace headrace::load {

namespace {

// Both are dense.
bool overlap(const NDArray& a, const NDArray& b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data<std::byte>());
  const auto begin_b = reinterpret_cast<uintptr_t>(b.data<std::byte>());
  return a.size_bytes() > 0 && b.size_bytes() > 0 && begin_a < begin_b + b.size_bytes() &&
         begin_b < begin_a + a.size_bytes();
}

bool can_hold(const std::optional<NDArray>& place, const artifact::TensorSpec& spec) {
  return place && !place->object()->read_only && place->dtype() == spec.dtype &&
         std::equal(place->shape().begin(), place->shape().end(), spec.shape.begin(), spec.shape.end()) &&
         executors::is_direct(spec, place->tensor());
}

// Two places that overlap are both left alone, so that the caller who copies into them decides which one wins.
bool is_apart(std::span<const std::optional<NDArray>> places, size_t i, std::span<const NDArray> inputs) {
  const auto meets = [&](const NDArray& other) { return other.is_dense() && overlap(*places[i], other); };
  for (size_t k = 0; k < places.size(); ++k) {
    if (k != i && places[k] && (!places[k]->is_dense() || meets(*places[k]))) return false;
  }
  return std::none_of(inputs.begin(), inputs.end(), meets);
}

}  // namespace

std::vector<NDArray> run(executors::Executor& executor, std::span<const NDArray> inputs) {
  return run_into(executor, inputs, {});
}

std::vector<NDArray> run_into(executors::Executor& executor, std::span<const NDArray> inputs,
                              std::span<const std::optional<NDArray>> places, std::span<uint64_t> step_nanoseconds) {
  if (inputs.size() != executor.inputs().size()) {
    std::vector<std::string> names;
    for (const artifact::TensorSpec& spec : executor.inputs()) names.push_back(spec.name);
    throw_user_error("the program takes {} inputs ({}), got {}", names.size(), fmt::join(names, ", "), inputs.size());
  }
  const std::lock_guard turn(executor.turn());
  for (size_t i = 0; i < inputs.size(); ++i) {
    executors::throw_if_failed(executor.give_input(i, inputs[i].tensor()));
  }
  std::vector<NDArray> outputs;
  for (const artifact::TensorSpec& spec : executor.outputs()) {
    const size_t i = outputs.size();
    const bool is_in_place = i < places.size() && can_hold(places[i], spec) && is_apart(places, i, inputs);
    outputs.push_back(is_in_place ? *places[i]
                                  : NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype));
    executors::throw_if_failed(executor.bind_output(i, outputs.back().tensor()));
  }
  executors::throw_if_failed(executor.run(step_nanoseconds));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DLTensor& made = executor.output(i);
    const Shape shape(made.shape, made.shape + made.ndim);
    if (shape == outputs[i].shape()) continue;  // else a bounded output, shorter than its bound
    const NDArray whole = outputs[i];
    outputs[i] = NDArray::view(made.data, shape, whole.dtype(), [whole] {});
  }
  return outputs;
}

std::vector<NDArray> zeros_for(std::span<const artifact::TensorSpec> specs) {
  std::vector<NDArray> zeros;
  for (const artifact::TensorSpec& spec : specs) {
    zeros.push_back(NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype));
    std::memset(zeros.back().data<uint8_t>(), 0, zeros.back().size_bytes());
  }
  return zeros;
}

}  // namespace headrace::load
