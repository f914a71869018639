#include "load/run.h"

#include <cstring>
#include <mutex>

namespace headrace::load {

std::vector<NDArray> run(executors::Executor& executor, std::span<const NDArray> inputs) {
  if (inputs.size() != executor.inputs().size()) {
    std::vector<std::string> names;
    for (const artifact::TensorSpec& spec : executor.inputs()) names.push_back(spec.name);
    throw_user_error("the program takes {} inputs ({}), got {}", names.size(), fmt::join(names, ", "), inputs.size());
  }
  const std::lock_guard turn(executor.turn());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NDArray& input = inputs[i];
    const auto address = reinterpret_cast<uintptr_t>(input.data<std::byte>());
    const bool is_direct = input.is_dense() && address % input.dtype().bytes() == 0;
    executors::throw_if_failed(is_direct ? executor.bind_input(i, input.tensor())
                                         : executor.set_input(i, input.tensor()));
  }
  std::vector<NDArray> outputs;
  for (const artifact::TensorSpec& spec : executor.outputs()) {
    outputs.push_back(NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype));
    executors::throw_if_failed(executor.bind_output(outputs.size() - 1, outputs.back().tensor()));
  }
  executors::throw_if_failed(executor.run());
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
