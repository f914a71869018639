#include "executors/pipeline/stage_code.h"
#include "executors/tensor_check.h"

namespace headrace::executors::pipeline {
namespace {

class FunctionStage final : public StageCode {
 public:
  FunctionStage(PackedFunc function, std::vector<Port> inputs, std::vector<Port> outputs)
      : function_(std::move(function)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    try {
      std::vector<Value> arguments;
      for (const Value* input : inputs) arguments.push_back(*input);
      const Value result = function_.call(arguments);
      arguments.clear();
      take_result(result, outputs);
      return {};
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

 private:
  void take_result(const Value& result, std::span<Value> outputs) const {
    if (outputs.empty()) return;
    if (outputs.size() == 1) {
      take_output(0, single(result), outputs[0]);
      return;
    }
    if (!result.is<Array<Value>>())
      throw_user_error("the function returned a {}; the stage has {} outputs, so it returns a sequence of them",
                       kind_name(result.raw()), outputs.size());
    const auto items = result.as<Array<Value>>();
    if (items.size() != outputs.size())
      throw_user_error("the function returned {} values; the stage has {} outputs", items.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) take_output(i, items[i], outputs[i]);
  }

  // The only output may come alone, or as a sequence of one tensor where a tensor is asked for.
  Value single(const Value& result) const {
    if (outputs_[0].is_any || !result.is<Array<Value>>()) return result;
    const auto items = result.as<Array<Value>>();
    return items.size() == 1 ? items[0] : result;
  }

  void take_output(size_t index, const Value& value, Value& output) const {
    const Port& port = outputs_[index];
    if (port.is_any) {
      output = value;
      return;
    }
    if (!matches_item<NDArray>(value.raw()))
      throw_user_error("the function returned a {} for output '{}', which is {}", kind_name(value.raw()), port.name(),
                       type_text(port));
    const NDArray array = value.as<NDArray>();
    require_tensor("the function's output", port.spec, array.tensor(), Access::copied);
    output.as<NDArray>().copy_from(array);
  }

  PackedFunc function_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace

std::shared_ptr<StageCode> make_function_stage(PackedFunc function, std::vector<Port> inputs,
                                               std::vector<Port> outputs) {
  if (!function) throw_user_error("a stage needs a function, got None");
  return std::make_shared<FunctionStage>(std::move(function), std::move(inputs), std::move(outputs));
}

}  // namespace headrace::executors::pipeline
