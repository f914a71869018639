#include "devices/simulated_stage.h"

#include "base/error.h"

namespace headrace::devices {
namespace {

using namespace executors::pipeline;

std::vector<Port> ports_on(const OpenDevice& device, std::string_view what, std::vector<Port> ports) {
  for (Port& port : ports) {
    if (port.is_any)
      throw_user_error("{} '{}' takes any value, and {} holds tensors of known types; run the stage on the CPU", what,
                       port.name(), name_of(device.device()));
    port.spec.location = device.location();
  }
  return ports;
}

// Returns a tensor of the host over the same memory, which it keeps alive.
NDArray host_view(const NDArray& tensor) {
  return NDArray::view(tensor.data<void>(), tensor.shape(), tensor.dtype(), [tensor] {});
}

class SimulatedStage final : public StageCode {
 public:
  SimulatedStage(std::shared_ptr<StageCode> code, std::shared_ptr<OpenDevice> device)
      : code_(std::move(code)),
        device_(std::move(device)),
        inputs_(ports_on(*device_, "input", code_->inputs())),
        outputs_(ports_on(*device_, "output", code_->outputs())) {
    device_->hold(*code_);
  }

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  int32_t most_in_batch() const override { return code_->most_in_batch(); }
  bool is_shared(size_t input) const override { return code_->is_shared(input); }
  void add_memory(executors::MemoryUse& memory) const override { code_->add_memory(memory); }
  std::vector<executors::FallbackEvent> fallbacks() const override { return code_->fallbacks(); }
  FailureKind failure_kind(const ErrorObj& error) const noexcept override { return code_->failure_kind(error); }
  std::optional<CodeProcess> process() const override { return code_->process(); }
  bool interrupt() noexcept override {
    const bool code_returns = code_->interrupt();
    return interrupt_device(device_->location().device) || code_returns;
  }
  void release() noexcept override { code_->release(); }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    return on_device(1, inputs, outputs, [&](Views& views) { return code_->run(views.arguments, views.outputs); });
  }

  Ref<ErrorObj> run_batch(const BatchCall& call) noexcept override {
    return on_device(call.count, call.inputs, call.outputs, [&](Views& views) {
      BatchCall of_host = call;
      of_host.inputs = views.arguments;
      of_host.outputs = views.outputs;
      return code_->run_batch(of_host);
    });
  }

 private:
  // The values of a call as the host sees them.
  struct Views {
    std::vector<Value> inputs;
    std::vector<const Value*> arguments;
    std::vector<Value> outputs;
  };

  template <typename Call>
  Ref<ErrorObj> on_device(size_t count, std::span<const Value* const> inputs, std::span<Value> outputs,
                          Call call) noexcept {
    try {
      Views views;
      for (size_t i = 0; i < inputs.size(); ++i) views.inputs.push_back(view_of(*inputs[i], inputs_[i / count]));
      for (const Value& value : views.inputs) views.arguments.push_back(&value);
      for (size_t i = 0; i < outputs.size(); ++i) views.outputs.push_back(view_of(outputs[i], outputs_[i / count]));
      Ref<ErrorObj> error = device_->run([&] { return call(views); });
      if (!error) check_in_place(views.outputs, outputs, count);
      return error;
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

  Value view_of(const Value& value, const Port& port) const {
    if (!matches_item<NDArray>(value.raw()) || value.as<NDArray>().device() != device_->location().device)
      throw_user_error("'{}' is not in the memory of {}, which is all that its stages read and write", port.name(),
                       name_of(device_->device()));
    return Value(host_view(value.as<NDArray>()));
  }

  // A program may put a tensor of its own, or a part of the one that it was given, in the place of an output.
  void check_in_place(const std::vector<Value>& views, std::span<const Value> outputs, size_t count) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const NDArray given = outputs[i].as<NDArray>(), made = views[i].as<NDArray>();
      if (made.data<void>() != given.data<void>() || made.shape() != given.shape())
        throw_user_error("output '{}' has shape ({}) this time; {} holds tensors of one shape: ({})",
                         outputs_[i / count].name(), fmt::join(made.shape(), ", "), name_of(device_->device()),
                         fmt::join(given.shape(), ", "));
    }
  }

  std::shared_ptr<StageCode> code_;
  std::shared_ptr<OpenDevice> device_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace

std::shared_ptr<StageCode> make_simulated_stage(std::shared_ptr<StageCode> code, std::shared_ptr<OpenDevice> device) {
  return std::make_shared<SimulatedStage>(std::move(code), std::move(device));
}

}  // namespace headrace::devices
