#include "executors/graph/graph_module.h"

#include <array>
#include <cstring>
#include <mutex>

#include "artifact/tensor_extent.h"
#include "artifact/trailer.h"
#include "executors/tensor_check.h"
#include "tensor/ndarray.h"
#include "tensor/strided_copy.h"
#include "tensor/strides.h"

namespace headrace::executors {
namespace {

using artifact::BoundParam;
using artifact::TensorSpec;

class GraphModuleBody;
using Method = Value (GraphModuleBody::*)(Args);

const DLTensor& tensor_at(Args args, int32_t index) {
  if (index < args.size() && args[index].type_index == type_index::kDLTensorPtr)
    return *static_cast<const DLTensor*>(args[index].v.v_ptr);
  const auto array = args.at<Ref<NDArrayObj>>(index);
  if (!array) throw_user_error("argument {}: expected a tensor, got None", index);
  return array->tensor;
}

// Returns the tensor that results are copied to.
const DLTensor& writable_tensor_at(Args args, int32_t index) {
  const DLTensor& tensor = tensor_at(args, index);
  if (args[index].type_index != type_index::kDLTensorPtr && args.at<Ref<NDArrayObj>>(index)->read_only)
    throw_user_error("argument {}: the tensor is read-only, and an output is written into it", index);
  return tensor;
}

std::string hash_of(const DLTensor& tensor) {
  const Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  NDArray dense = NDArray::view(data, shape, DataType(tensor.dtype));
  if (tensor.strides != nullptr && !is_dense(shape, {tensor.strides, shape.size()})) {
    dense = NDArray::empty(shape, dense.dtype());
    copy_strided(tensor, dense.dtype().bytes(), dense.data<std::byte>());
  }
  return artifact::content_hash({dense.data<const uint8_t>(), dense.size_bytes()});
}

// Checks a tensor against the one that was bound, because the code may contain its elements in any form.
void check_bound(const BoundParam& param, const DLTensor& tensor) {
  require_tensor("parameter", param.spec, tensor, Access::copied);
  if (hash_of(tensor) == param.hash) return;
  throw_user_error(
      "the parameter '{}' is a constant of the program since it was compiled, and this tensor has other elements than "
      "the one that was given then; compile again with this one, or without any for '{}', which is an input then",
      param.spec.name, param.spec.name);
}

class GraphModuleBody : public runtime::ModuleBody {
 public:
  explicit GraphModuleBody(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {
    kept_inputs_.resize(inputs().size());
    kept_outputs_.resize(outputs().size());
  }

  std::string_view type_key() const override { return "graph_executor"; }
  PackedFunc get_function(const std::string& name, const runtime::Module& self) override;

 private:
  const std::vector<TensorSpec>& inputs() const { return executor_->inputs(); }
  const std::vector<TensorSpec>& outputs() const { return executor_->outputs(); }

  int64_t index_of(const std::string& name) const {
    for (size_t i = 0; i < inputs().size(); ++i) {
      if (inputs()[i].name == name) return static_cast<int64_t>(i);
    }
    return -1;
  }

  // Returns the parameter of the name that argument 0 is, if it was bound.
  const BoundParam* bound_at(Args args) const {
    if (args.size() == 0 || !ValueTraits<std::string>::matches(args[0])) return nullptr;
    const std::string name = args.at<std::string>(0);
    for (const BoundParam& param : executor_->bound_params()) {
      if (param.spec.name == name) return &param;
    }
    return nullptr;
  }

  // Returns the input that argument 0 names.
  size_t input_at(Args args) const {
    const bool is_name = args.size() > 0 && ValueTraits<std::string>::matches(args[0]);
    const int64_t index = is_name ? index_of(args.at<std::string>(0)) : args.at<int64_t>(0);
    if (index >= 0 && static_cast<size_t>(index) < inputs().size()) return static_cast<size_t>(index);
    std::vector<std::string_view> names;
    for (const TensorSpec& spec : inputs()) names.push_back(spec.name);
    throw_user_error("there is no input {}{}; the inputs are {}",
                     is_name ? fmt::format("'{}'", args.at<std::string>(0)) : std::to_string(index),
                     bound_at(args) == nullptr ? "" : ": the parameter was bound when the program was compiled",
                     fmt::join(names, ", "));
  }

  size_t output_at(Args args) const {
    const auto index = args.at<int64_t>(0);
    if (index < 0 || static_cast<size_t>(index) >= outputs().size())
      throw_user_error("there is no output {}: the program has {}", index, outputs().size());
    return static_cast<size_t>(index);
  }

  // Keeps an NDArray alive as long as the program uses its memory; a caller that passes a DLTensor* must do so itself.
  static void keep(Value& slot, const RawValue& raw) {
    slot = raw.type_index == type_index::kDLTensorPtr ? Value() : Value::own(raw);
  }

  Value set_input(Args args) {
    if (const BoundParam* bound = bound_at(args)) {
      check_bound(*bound, tensor_at(args, 1));
      return {};
    }
    const size_t index = input_at(args);
    throw_if_failed(executor_->set_input(index, tensor_at(args, 1)));
    kept_inputs_[index] = Value();
    return {};
  }
  Value set_input_zero_copy(Args args) {
    const size_t index = input_at(args);
    throw_if_failed(executor_->bind_input(index, tensor_at(args, 1)));
    keep(kept_inputs_[index], args[1]);
    return {};
  }
  Value set_output_zero_copy(Args args) {
    const size_t index = output_at(args);
    throw_if_failed(executor_->bind_output(index, writable_tensor_at(args, 1)));
    keep(kept_outputs_[index], args[1]);
    return {};
  }

  Value run(Args) {
    throw_if_failed(executor_->run());
    return {};
  }

  // Returns a view that keeps the memory's owner alive: the executor, or the NDArray that was set.
  Value view_of(const DLTensor& tensor, const Value& kept) const {
    const Shape shape(tensor.shape, tensor.shape + tensor.ndim);
    const NDArray view = NDArray::view(tensor.data, shape, DataType(tensor.dtype), [executor = executor_, kept] {});
    const auto owner = kept.as<NDArray>();
    return owner && owner.object()->read_only ? view.as_read_only() : view;
  }

  Value get_output(Args args) {
    const size_t index = output_at(args);
    const DLTensor& made = executor_->output(index);
    const DLTensor* dst = args.size() > 1 ? &writable_tensor_at(args, 1) : nullptr;
    if (dst != nullptr) {
      TensorSpec spec = outputs()[index];
      spec.shape.assign(made.shape, made.shape + made.ndim);
      require_tensor("output", spec, *dst, Access::direct);
    }
    if (!executor_->has_output(index))
      throw_user_error("output '{}' was not computed yet; call run first, which must succeed", outputs()[index].name);
    const NDArray view = view_of(made, kept_outputs_[index]).as<NDArray>();
    if (dst == nullptr) return view;
    std::memcpy(static_cast<std::byte*>(dst->data) + dst->byte_offset, view.bytes().data(), view.bytes().size());
    return {};
  }
  Value get_input(Args args) {
    const size_t index = input_at(args);
    return view_of(executor_->input(index), kept_inputs_[index]);
  }

  Value get_num_inputs(Args) { return static_cast<int64_t>(inputs().size()); }
  Value get_num_outputs(Args) { return static_cast<int64_t>(outputs().size()); }
  Value get_input_index(Args args) { return index_of(args.at<std::string>(0)); }

  Value get_bound_params(Args) {
    Array<std::string> names;
    for (const BoundParam& param : executor_->bound_params()) names.push_back(param.spec.name);
    return names;
  }

  static Value info(const std::vector<TensorSpec>& specs) {
    Map<std::string, Shape> shapes;
    Map<std::string, std::string> dtypes;
    for (const TensorSpec& spec : specs) {
      shapes.set(spec.name, spec.shape);
      dtypes.set(spec.name, spec.dtype.to_string());
    }
    return Map<std::string, Value>({{"shape", Value(shapes)}, {"dtype", Value(dtypes)}});
  }
  Value get_input_info(Args) { return info(inputs()); }
  Value get_output_info(Args) { return info(outputs()); }

  std::shared_ptr<Executor> executor_;
  std::vector<Value> kept_inputs_;
  std::vector<Value> kept_outputs_;
};

PackedFunc GraphModuleBody::get_function(const std::string& name, const runtime::Module& self) {
  using Body = GraphModuleBody;
  static constexpr std::array<std::pair<std::string_view, Method>, 12> kMethods = {{
      {"set_input", &Body::set_input},
      {"set_input_zero_copy", &Body::set_input_zero_copy},
      {"set_output_zero_copy", &Body::set_output_zero_copy},
      {"run", &Body::run},
      {"get_output", &Body::get_output},
      {"get_input", &Body::get_input},
      {"get_num_inputs", &Body::get_num_inputs},
      {"get_num_outputs", &Body::get_num_outputs},
      {"get_input_index", &Body::get_input_index},
      {"get_bound_params", &Body::get_bound_params},
      {"get_input_info", &Body::get_input_info},
      {"get_output_info", &Body::get_output_info},
  }};
  for (const auto& [known, method] : kMethods) {
    if (known != name) continue;
    return PackedFunc([self, this, method = method](Args args) {
      const std::lock_guard turn(executor_->turn());
      return (this->*method)(args);
    });
  }
  return {};
}

}  // namespace

runtime::Module make_graph_module(std::shared_ptr<Executor> executor) {
  return runtime::Module(std::make_unique<GraphModuleBody>(std::move(executor)));
}

}  // namespace headrace::executors
