#include "executors/pipeline/stage_code.h"

#include <mutex>

#include "executors/pipeline/stage_error.h"
#include "executors/tensor_check.h"

namespace headrace::executors::pipeline {
namespace {

std::vector<Port> ports_of(const std::vector<artifact::TensorSpec>& specs) {
  std::vector<Port> ports;
  for (const artifact::TensorSpec& spec : specs) ports.push_back({.spec = spec});
  return ports;
}

class ExecutorStage final : public StageCode {
 public:
  explicit ExecutorStage(std::shared_ptr<Executor> executor)
      : executor_(std::move(executor)),
        inputs_(ports_of(executor_->inputs())),
        outputs_(ports_of(executor_->outputs())) {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  bool is_program() const override { return true; }
  void add_memory(MemoryUse& memory) const override { executor_->add_memory(memory); }
  std::vector<FallbackEvent> fallbacks() const override { return executor_->fallbacks(); }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    try {
      const std::lock_guard turn(executor_->turn());
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (Status status = give_input(i, *inputs[i]); !status.ok()) return error_of(status);
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        const DLTensor& tensor = outputs[i].as<NDArray>().tensor();
        if (Status status = executor_->bind_output(i, tensor); !status.ok()) return error_of(status);
      }
      if (Status status = executor_->run(); !status.ok()) return error_of(status);
      fit_outputs(outputs);
      return {};
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

 private:
  Status give_input(size_t index, const Value& value) {
    if (!matches_item<NDArray>(value.raw()))
      throw_user_error("input '{}' is a {}; it takes a tensor", inputs_[index].name(), kind_name(value.raw()));
    return executor_->give_input(index, value.as<NDArray>().tensor());
  }

  // Cuts bounded outputs to the shapes that this run computed.
  void fit_outputs(std::span<Value> outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DLTensor& made = executor_->output(i);
      const std::span<const int64_t> shape(made.shape, static_cast<size_t>(made.ndim));
      if (std::equal(shape.begin(), shape.end(), outputs_[i].spec.shape.begin(), outputs_[i].spec.shape.end()))
        continue;
      const NDArray whole = outputs[i].as<NDArray>();
      outputs[i] = Value(NDArray::view(made.data, Shape(shape.begin(), shape.end()), whole.dtype(), [whole] {}));
    }
  }

  std::shared_ptr<Executor> executor_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace

std::shared_ptr<StageCode> make_executor_stage(std::shared_ptr<Executor> executor) {
  return std::make_shared<ExecutorStage>(std::move(executor));
}

}  // namespace headrace::executors::pipeline
