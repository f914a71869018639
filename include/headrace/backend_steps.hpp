// Runs regions one op after another, so that a backend says how to compute one call, and nothing of graphs and memory.
//
//   class Mine : public headrace::plugin::StepBackend {
//     Verdict supports(const Node& call) const override { ... }
//     void compile_step(const Node& call, const Request& request, Writer& out) const override { ... }
//     std::unique_ptr<Kernel> load_step(Reader& in) const override { ... }
//   };
//   HEADRACE_BACKEND(Mine)
#ifndef HEADRACE_BACKEND_STEPS_HPP_
#define HEADRACE_BACKEND_STEPS_HPP_

#include <headrace/backend.hpp>

#include <new>

namespace headrace {
namespace plugin {

// A backend whose regions are steps: calls and composites, in order. Tensors of known sizes alone. A region that a
// program marks by hand is refused where it has a call that `supports` refuses.
class StepBackend : public Backend {
 public:
  // Writes what `load_step` needs to compute a call or a composite. Throws Refusal to leave the region to the host.
  virtual void compile_step(const Node& node, const Request& request, Writer& out) const = 0;
  // Reads what `compile_step` wrote. The kernel is called with the tensors of the operands, those of tuples in order,
  // and then of the results. Constants are operands, but for those in the body of a composite.
  virtual std::unique_ptr<Kernel> load_step(Reader& in) const = 0;

  void compile(const Graph& region, const Request& request, Writer& out) const final;
  std::unique_ptr<Kernel> load(Reader& in) const final;
};

namespace detail {

// Where the memory of a value comes from.
enum class Source : uint32_t { argument, constant, arena };

// A tensor of a region, as it is saved.
struct StepValue {
  DLDataType dtype{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // dense
  Source source = Source::arena;
  const void* data = nullptr;  // a constant's, which the host keeps

  uint64_t size_bytes = 0;  // follows from the dtype and the shape
  uint64_t offset = 0;      // in the arena
};

// The most bytes of a tensor, and of all tensors of a region together.
constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

// Returns the bytes of a tensor. Throws std::runtime_error for a size that no tensor has.
inline uint64_t size_bytes_of(const DLDataType& dtype, const Span<int64_t>& shape) {
  uint64_t size = (uint64_t{dtype.bits} * dtype.lanes + 7) / 8;
  for (const int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && size > kMaxBytes / static_cast<uint64_t>(dim)))
      throw std::runtime_error("a tensor has a size that is negative or too large");
    size *= static_cast<uint64_t>(dim);
  }
  return size;
}

// Numbers the tensors of a region, and writes them and its steps.
class StepWriter {
 public:
  // `out` outlives the writer.
  StepWriter(const StepBackend& backend, const Request& request, Writer& out)
      : backend_(backend), request_(request), out_(out), values_(out.part()), steps_(out.part()) {}

  void write(const Graph& region) {
    for (const Node node : region) add(node);
    std::vector<uint32_t> outputs;
    for (const GraphOutput& output : region.outputs())
      outputs.push_back(of_node_[output.node.number()].at(output.result));
    out_.put(num_values_);
    out_.put(num_steps_);
    out_.put_all(outputs);
    out_.put_text(values_.bytes());
    out_.put_text(steps_.bytes());
  }

 private:
  void add(const Node& node) {
    of_node_.emplace_back();
    std::vector<uint32_t>& own = of_node_.back();
    switch (node.kind()) {
      case HR_NODE_INPUT:
        own = {add_value(node, 0, Source::argument)};
        return;
      case HR_NODE_CONST:
        own = {add_value(node, 0, Source::constant)};
        return;
      case HR_NODE_CALL:
      case HR_NODE_COMPOSITE:
        if (node.kind() == HR_NODE_CALL) refuse_unsupported(node);
        for (uint32_t i = 0; i < node.num_results(); ++i) own.push_back(add_value(node, i, Source::arena));
        add_step(node, own);
        return;
      case HR_NODE_TUPLE:
        own = operands_of(node);
        return;
      case HR_NODE_ITEM:
        own = item(node);
        return;
    }
    throw Refusal("a node is of a kind that this version of the backend does not know");
  }

  // A region that a program marks by hand comes without a question.
  void refuse_unsupported(const Node& call) const {
    const Verdict verdict = backend_.supports(call);
    if (verdict.reason != HR_REASON_NONE) throw Refusal(verdict.message, verdict.reason);
  }

  std::vector<uint32_t> operands_of(const Node& node) const {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < node.num_operands(); ++i) {
      const std::vector<uint32_t>& some = of_node_[node.operand(i).number()];
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  // An item of a tuple may be a tuple again; a result of a call is a tensor.
  std::vector<uint32_t> item(const Node& node) const {
    const Node whole = node.operand(0);
    if (whole.kind() == HR_NODE_TUPLE) return of_node_[whole.operand(node.item_index()).number()];
    if (whole.kind() == HR_NODE_ITEM) throw Refusal("it takes an item of an item of a tuple");
    return {of_node_[whole.number()].at(node.item_index())};
  }

  uint32_t add_value(const Node& node, uint32_t result, Source source) {
    const TensorType type = node.type(result);
    if (!type.is_static()) throw Refusal("the size of a tensor is not a number", HR_REASON_DYNAMIC_UNSUPPORTED);
    values_.put(type.dtype.code);
    values_.put(type.dtype.bits);
    values_.put(type.dtype.lanes);
    values_.put_all(type.shape);
    values_.put(source);
    if (source == Source::constant) values_.put_constant(node);
    return num_values_++;
  }

  void add_step(const Node& node, const std::vector<uint32_t>& results) {
    std::vector<uint32_t> tensors = operands_of(node);
    tensors.insert(tensors.end(), results.begin(), results.end());
    steps_.put_all(tensors);
    Writer own = steps_.part();
    backend_.compile_step(node, request_, own);
    steps_.put_text(own.bytes());
    ++num_steps_;
  }

  const StepBackend& backend_;
  const Request& request_;
  Writer& out_;
  std::vector<std::vector<uint32_t>> of_node_;  // the values of each node
  Writer values_, steps_;
  uint32_t num_values_ = 0, num_steps_ = 0;
};

// A region of steps that is ready to run. Runs share nothing that they write to.
class StepKernel : public Kernel {
 public:
  StepKernel(const StepBackend& backend, Reader& in) {
    const auto num_values = in.get<uint32_t>(), num_steps = in.get<uint32_t>();
    outputs_ = in.get_all<uint32_t>();
    const std::string values = in.get_text(), steps = in.get_text();
    Reader value_reader = in.part(values), step_reader = in.part(steps);
    for (uint32_t i = 0; i < num_values; ++i) values_.push_back(read_value(value_reader));
    for (uint32_t i = 0; i < num_steps; ++i) {
      std::vector<uint32_t> tensors = step_reader.get_all<uint32_t>();
      const std::string own = step_reader.get_text();
      Reader own_reader = in.part(own);
      steps_.push_back({std::move(tensors), backend.load_step(own_reader)});
      if (!steps_.back().kernel || !own_reader.is_at_end())
        throw std::runtime_error("the backend does not load all that it wrote when it compiled a step");
    }
    check_numbers();
  }

  void run(const Call& call) const override {
    const std::unique_ptr<char, FreeAligned> arena(
        static_cast<char*>(::operator new(static_cast<size_t>(arena_size_), std::align_val_t{HR_ALIGNMENT})));
    std::vector<DLTensor> tensors = bind(call, arena.get());
    std::vector<DLTensor*> args;
    for (const Step& step : steps_) {
      args.clear();
      for (const uint32_t value : step.tensors) args.push_back(&tensors[value]);
      step.kernel->run(Call(&call.env(), args.data(), static_cast<int32_t>(args.size())));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const DLTensor& output = call.tensor(num_inputs_ + i);
      const auto size = static_cast<size_t>(values_[outputs_[i]].size_bytes);
      if (size > 0 && tensors[outputs_[i]].data != output.data)
        std::memcpy(output.data, tensors[outputs_[i]].data, size);
    }
  }

  EntryTypes types() const override {
    EntryTypes types;
    for (const StepValue& value : values_) {
      if (value.source == Source::argument) types.add_input(value.dtype, value.shape);
    }
    for (const uint32_t output : outputs_) types.add_output(values_[output].dtype, values_[output].shape);
    return types;
  }

 private:
  struct FreeAligned {
    void operator()(char* memory) const { ::operator delete(memory, std::align_val_t{HR_ALIGNMENT}); }
  };
  struct Step {
    std::vector<uint32_t> tensors;
    std::unique_ptr<Kernel> kernel;
  };

  StepValue read_value(Reader& in) {
    StepValue value;
    value.dtype.code = in.get<uint8_t>();
    value.dtype.bits = in.get<uint8_t>();
    value.dtype.lanes = in.get<uint16_t>();
    value.shape = in.get_all<int64_t>();
    const auto source = in.get<uint32_t>();
    if (source > static_cast<uint32_t>(Source::arena)) throw std::runtime_error("a tensor is of an unknown source");
    value.source = static_cast<Source>(source);
    value.size_bytes = size_bytes_of(value.dtype, {value.shape.data(), value.shape.size()});
    value.strides.assign(value.shape.size(), 1);
    for (size_t i = value.shape.size(); i-- > 1;) value.strides[i - 1] = value.strides[i] * value.shape[i];
    if (value.source == Source::constant) value.data = constant_of(value, in.get_constant());
    if (value.source == Source::argument) ++num_inputs_;
    value.offset = arena_size_;
    if (value.source == Source::arena)
      arena_size_ += (value.size_bytes + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT;
    if (arena_size_ > kMaxBytes) throw std::runtime_error("the tensors of the region are too large together");
    return value;
  }

  static const void* constant_of(const StepValue& value, const DLTensor& tensor) {
    const Span<int64_t> shape(tensor.shape, static_cast<size_t>(tensor.ndim));
    const bool is_its = tensor.dtype.code == value.dtype.code && tensor.dtype.bits == value.dtype.bits &&
                        tensor.dtype.lanes == value.dtype.lanes &&
                        size_bytes_of(tensor.dtype, shape) == value.size_bytes;
    if (!is_its) throw std::runtime_error("a constant is of another type or size than when the model was compiled");
    return static_cast<const char*>(tensor.data) + tensor.byte_offset;
  }

  void check_numbers() const {
    const auto check = [&](const std::vector<uint32_t>& numbers) {
      for (const uint32_t number : numbers) {
        if (number >= values_.size()) throw std::runtime_error("a step names a tensor that the region does not have");
      }
    };
    check(outputs_);
    for (const Step& step : steps_) check(step.tensors);
  }

  // Gives each value its memory. A result that leaves the region is computed in the memory of its output.
  std::vector<DLTensor> bind(const Call& call, char* arena) const {
    if (call.num_tensors() != num_inputs_ + outputs_.size())
      throw std::runtime_error("it was called with another number of tensors than it has inputs and outputs");
    std::vector<DLTensor> tensors;
    size_t input = 0;
    for (const StepValue& value : values_) {
      DLTensor tensor{};
      tensor.device.device_type = kDLCPU;
      tensor.dtype = value.dtype;
      tensor.ndim = static_cast<int32_t>(value.shape.size());
      tensor.shape = const_cast<int64_t*>(value.shape.data());
      tensor.strides = const_cast<int64_t*>(value.strides.data());
      tensor.data = arena + value.offset;
      if (value.source == Source::constant) tensor.data = const_cast<void*>(value.data);
      tensors.push_back(value.source == Source::argument ? call.tensor(input++) : tensor);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (values_[outputs_[i]].source == Source::arena) tensors[outputs_[i]].data = call.tensor(num_inputs_ + i).data;
    }
    return tensors;
  }

  std::vector<StepValue> values_;
  std::vector<Step> steps_;
  std::vector<uint32_t> outputs_;
  size_t num_inputs_ = 0;
  uint64_t arena_size_ = 0;
};

}  // namespace detail

inline void StepBackend::compile(const Graph& region, const Request& request, Writer& out) const {
  detail::StepWriter(*this, request, out).write(region);
}

inline std::unique_ptr<Kernel> StepBackend::load(Reader& in) const {
  return std::make_unique<detail::StepKernel>(*this, in);
}

}  // namespace plugin
}  // namespace headrace

#endif  // HEADRACE_BACKEND_STEPS_HPP_
