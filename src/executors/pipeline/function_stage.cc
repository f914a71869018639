#include "executors/pipeline/stage_code.h"
#include "executors/tensor_check.h"

namespace headrace::executors::pipeline {
namespace {

void take_output(const Port& port, const Value& value, Value& output) {
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

// Returns one value for each request, of what a function returned for an output: an array of them, or a tensor with a
// row for each.
std::vector<Value> split_by_request(const Value& result, const Port& port, size_t count) {
  std::vector<Value> values;
  const auto check_count = [&](int64_t found) {
    if (found != static_cast<int64_t>(count))
      throw_user_error("the function returned {} values for output '{}'; it was called for {} requests", found,
                       port.name(), count);
  };
  if (result.is<Array<Value>>()) {
    const auto items = result.as<Array<Value>>();
    check_count(static_cast<int64_t>(items.size()));
    for (size_t i = 0; i < count; ++i) values.push_back(items[i]);
    return values;
  }
  if (!matches_item<NDArray>(result.raw()) || result.as<NDArray>().shape().empty())
    throw_user_error(
        "the function returned a {} for output '{}'; called for several requests, it returns a sequence "
        "of one value for each, or a tensor with a row for each",
        kind_name(result.raw()), port.name());
  const NDArray rows = result.as<NDArray>().to_dense();
  check_count(rows.shape()[0]);
  const Shape shape(rows.shape().begin() + 1, rows.shape().end());
  const size_t nbytes = rows.size_bytes() / count;
  for (size_t i = 0; i < count; ++i)
    values.push_back(Value(NDArray::view(rows.data<std::byte>() + i * nbytes, shape, rows.dtype(), [rows] {})));
  return values;
}

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
      take_output(outputs_[0], single(result), outputs[0]);
      return;
    }
    if (!result.is<Array<Value>>())
      throw_user_error("the function returned a {}; the stage has {} outputs, so it returns a sequence of them",
                       kind_name(result.raw()), outputs.size());
    const auto items = result.as<Array<Value>>();
    if (items.size() != outputs.size())
      throw_user_error("the function returned {} values; the stage has {} outputs", items.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) take_output(outputs_[i], items[i], outputs[i]);
  }

  // The only output may come alone, or as a sequence of one tensor where a tensor is asked for.
  Value single(const Value& result) const {
    if (outputs_[0].is_any || !result.is<Array<Value>>()) return result;
    const auto items = result.as<Array<Value>>();
    return items.size() == 1 ? items[0] : result;
  }

  PackedFunc function_;
  std::vector<Port> inputs_, outputs_;
};

class BatchFunctionStage final : public BatchStageCode {
 public:
  BatchFunctionStage(PackedFunc function, std::vector<Port> inputs, std::vector<Port> outputs)
      : function_(std::move(function)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  int32_t most_in_batch() const override { return artifact::kMostInBatch; }

  Ref<ErrorObj> run_batch(const BatchCall& call) noexcept override {
    try {
      std::vector<Value> arguments;
      for (size_t i = 0; i < inputs_.size(); ++i) arguments.push_back(argument(call, i));
      const Value result = function_.call(arguments);
      arguments.clear();
      take_results(result, call);
      return {};
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

 private:
  static Value argument(const BatchCall& call, size_t input) {
    const std::span<const Value* const> values = call.inputs.subspan(input * call.count, call.count);
    if (call.sources[input].kind == Source::Kind::param) return *values[0];
    Array<Value> of_requests;
    for (const Value* value : values) of_requests.push_back(*value);
    return Value(of_requests);
  }

  void take_results(const Value& result, const BatchCall& call) const {
    if (outputs_.empty()) return;
    if (outputs_.size() == 1) {
      take_port(0, result, call);
      return;
    }
    if (!result.is<Array<Value>>() || result.as<Array<Value>>().size() != outputs_.size())
      throw_user_error(
          "the function returned a {}; the stage has {} outputs, so it returns a sequence of as many "
          "sequences, each with one value for each request",
          kind_name(result.raw()), outputs_.size());
    const auto items = result.as<Array<Value>>();
    for (size_t i = 0; i < items.size(); ++i) take_port(i, items[i], call);
  }

  // A value that does not fit the port is the error of its request.
  void take_port(size_t port, const Value& result, const BatchCall& call) const {
    const std::vector<Value> values = split_by_request(result, outputs_[port], call.count);
    for (size_t request = 0; request < call.count; ++request) {
      try {
        take_output(outputs_[port], values[request], call.outputs[port * call.count + request]);
      } catch (...) {
        store_current_exception();
        call.errors[request] = take_stored_error();
      }
    }
  }

  PackedFunc function_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace

std::shared_ptr<StageCode> make_batch_function_stage(PackedFunc function, std::vector<Port> inputs,
                                                     std::vector<Port> outputs) {
  if (!function) throw_user_error("a stage needs a function, got None");
  return std::make_shared<BatchFunctionStage>(std::move(function), std::move(inputs), std::move(outputs));
}

std::shared_ptr<StageCode> make_function_stage(PackedFunc function, std::vector<Port> inputs,
                                               std::vector<Port> outputs) {
  if (!function) throw_user_error("a stage needs a function, got None");
  return std::make_shared<FunctionStage>(std::move(function), std::move(inputs), std::move(outputs));
}

}  // namespace headrace::executors::pipeline
