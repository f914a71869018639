#include "load/run.h"

#include <mutex>

namespace headrace::load {

std::vector<NDArray> run(Executor& executor, std::span<const NDArray> inputs) {
  executors::GraphRunner& runner = executor.runner();
  const artifact::Program& program = runner.program();
  if (inputs.size() != program.inputs.size()) {
    std::vector<std::string> names;
    for (const artifact::TensorSpec& spec : program.inputs) names.push_back(spec.name);
    throw_user_error("the program takes {} inputs ({}), got {}", names.size(), fmt::join(names, ", "), inputs.size());
  }
  const std::lock_guard turn(executor.turn());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NDArray& input = inputs[i];
    const auto address = reinterpret_cast<uintptr_t>(input.data<std::byte>());
    if (input.is_dense() && address % input.dtype().bytes() == 0) {
      runner.set_input_zero_copy(i, input.tensor());
    } else {
      runner.set_input(i, input.tensor());
    }
  }
  std::vector<NDArray> outputs;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const artifact::TensorSpec& spec = program.outputs[i];
    outputs.push_back(NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype));
    runner.set_output_zero_copy(i, outputs.back().tensor());
  }
  executors::throw_if_failed(runner.run());
  for (const artifact::BoundedOutput& bounded : program.bounded_outputs) {
    const auto index = static_cast<size_t>(bounded.output);
    const DLTensor& made = runner.output(index);
    const NDArray whole = outputs[index];
    outputs[index] = NDArray::view(made.data, Shape(made.shape, made.shape + made.ndim), whole.dtype(), [whole] {});
  }
  return outputs;
}

}  // namespace headrace::load
