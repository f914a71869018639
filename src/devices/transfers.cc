#include "devices/transfers.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "devices/open_device.h"
#include "executors/tensor_check.h"

namespace headrace::devices {
namespace {

using namespace executors::pipeline;
using artifact::Location;

const Location kHost = {};

// Returns the tensor that goes from one port to the other. UserError for a value that does not fit.
NDArray tensor_between(const Port& from, const Port& to, const Value& value) {
  if (!matches_item<NDArray>(value.raw()))
    throw_user_error("'{}' is a {}; {} takes a tensor, {}", from.name(), kind_name(value.raw()),
                     to_string(to.spec.location), type_text(to));
  auto tensor = value.as<NDArray>();
  if (from.is_any) executors::require_tensor("output", to.spec, tensor.tensor(), executors::Access::copied);
  return tensor;
}

// Ends the wait of a transfer between the memory of two ports.
bool interrupt_transfer(const Port& from, const Port& to) noexcept {
  const bool was_out = interrupt_device(from.spec.location.device);
  return interrupt_device(to.spec.location.device) || was_out;
}

// Copies a value of the source's port into a tensor of the reader's.
class TransferStage final : public StageCode {
 public:
  TransferStage(Port from, Port to) : inputs_{std::move(from)}, outputs_{std::move(to)} {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  bool interrupt() noexcept override { return interrupt_transfer(inputs_[0], outputs_[0]); }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    try {
      outputs[0].as<NDArray>().copy_from(tensor_between(inputs_[0], outputs_[0], *inputs[0]));
      return {};
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

 private:
  std::vector<Port> inputs_, outputs_;
};

// Copies a parameter when it has a new value. Requests that see one value share one tensor of the device.
class ParameterTransfer final : public StageCode {
 public:
  ParameterTransfer(Port from, const Port& to) : to_(to), inputs_{std::move(from)}, outputs_{to} {
    outputs_[0].is_any = true;  // the stage makes the value
  }

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  bool interrupt() noexcept override { return interrupt_transfer(inputs_[0], outputs_[0]); }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      if (copied_of_.is_none() || inputs[0]->object() != copied_of_.object()) {
        const NDArray tensor = tensor_between(inputs_[0], to_, *inputs[0]);
        copied_of_ = copy_ = Value();  // the device need not have room for two
        const Shape shape(to_.spec.shape.begin(), to_.spec.shape.end());
        const NDArray copy = NDArray::empty(shape, to_.spec.dtype, to_.spec.location.device);
        copy.copy_from(tensor);
        copied_of_ = *inputs[0];
        copy_ = Value(copy);
      }
      outputs[0] = copy_;
      return {};
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

 private:
  Port to_;
  std::vector<Port> inputs_, outputs_;
  std::mutex mutex_;  // guards what follows
  Value copied_of_, copy_;
};

class TransferAdder {
 public:
  explicit TransferAdder(PipelineSpec& spec) : spec_(spec) {}

  std::vector<Transfer> run() {
    for (size_t i = 0, count = spec_.stages.size(); i < count; ++i) {
      for (size_t port = 0; port < spec_.stages[i].inputs.size(); ++port) {
        const Port& reader = spec_.stages[i].replicas.at(0)->inputs().at(port);
        spec_.stages[i].inputs[port] = bring(spec_.stages[i].inputs[port], reader);
      }
    }
    for (OutputSpec& output : spec_.outputs) output.source = bring(output.source, {.spec = {}, .is_any = true});
    return std::move(transfers_);
  }

 private:
  // Returns the source of the value in the memory of the reader. Adds the stages that bring it there.
  Source bring(Source source, const Port& reader) {
    const Location& wanted = reader.spec.location;
    if (port_of(spec_, source).spec.location == wanted) return source;
    if (port_of(spec_, source).spec.location != kHost) source = copy(source, port_of(spec_, source), kHost);
    return wanted == kHost ? source : copy(source, reader, wanted);
  }

  // Returns the source of a copy in that memory, of the type that `typed` has.
  Source copy(const Source& source, const Port& typed, const Location& memory) {
    const auto [known, is_new] =
        copies_.try_emplace({source.kind, source.index, source.port, to_string(memory)}, spec_.stages.size());
    if (is_new) add_stage(source, typed, memory);
    return {.kind = Source::Kind::stage, .index = known->second, .port = 0};
  }

  void add_stage(const Source& source, const Port& typed, const Location& memory) {
    const Port from = port_of(spec_, source);
    Port to = typed;
    to.spec.name = from.name();
    to.spec.location = memory;
    const bool is_in = memory != kHost;
    const Location& device = is_in ? memory : from.spec.location;
    const bool is_param = source.kind == Source::Kind::param;
    const std::string& text = texts_.emplace(spec_.stages.size(), short_text(source)).first->second;
    transfers_.push_back({.stage = spec_.stages.size(),
                          .device = device,
                          .is_in = is_in,
                          .nbytes = is_param ? -1 : *artifact::tensor_nbytes(to.spec.dtype, to.spec.shape)});
    std::shared_ptr<StageCode> code = is_param
                                          ? std::shared_ptr<StageCode>(std::make_shared<ParameterTransfer>(from, to))
                                          : std::make_shared<TransferStage>(from, to);
    spec_.stages.push_back({.name = free_name(fmt::format("{} {} {}", text, is_in ? "to" : "from", device.memory_kind)),
                            .replicas = {std::move(code)},
                            .inputs = {source},
                            .group = group_of(device, is_in)});
  }

  // Returns "x", "stage0.y" or "weights.w"; for a copy, that of what it copies.
  std::string short_text(const Source& source) const {
    const std::string& port = port_of(spec_, source).name();
    if (source.kind == Source::Kind::param) return fmt::format("{}.{}", spec_.params[source.index].group, port);
    if (source.kind == Source::Kind::input) return port;
    const auto copy = texts_.find(source.index);
    return copy != texts_.end() ? copy->second : fmt::format("{}.{}", spec_.stages[source.index].name, port);
  }

  std::string free_name(const std::string& wanted) const {
    std::string name = wanted;
    const auto is_taken = [&] {
      return std::any_of(spec_.stages.begin(), spec_.stages.end(),
                         [&](const StageSpec& stage) { return stage.name == name; });
    };
    for (int count = 2; is_taken(); ++count) name = fmt::format("{} ({})", wanted, count);
    return name;
  }

  // Returns the group of a direction of a link.
  size_t group_of(const Location& device, bool is_in) {
    const auto [known, is_new] = groups_.try_emplace({to_string(device), is_in}, spec_.groups.size());
    if (is_new) spec_.groups.push_back({.name = fmt::format("{} {}", device.memory_kind, is_in ? "in" : "out")});
    return known->second;
  }

  PipelineSpec& spec_;
  std::vector<Transfer> transfers_;
  std::map<std::tuple<Source::Kind, size_t, size_t, std::string>, size_t> copies_;  // stages by source and memory
  std::map<std::pair<std::string, bool>, size_t> groups_;
  std::map<size_t, std::string> texts_;  // the copies of the stages
};

}  // namespace

std::vector<Transfer> add_transfers(PipelineSpec& spec) { return TransferAdder(spec).run(); }

}  // namespace headrace::devices
