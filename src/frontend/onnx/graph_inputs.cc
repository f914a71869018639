#include "frontend/onnx/graph_inputs.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/node/node_context.h"
#include "ir/max_dim.h"
#include "ops/loops/dims.h"

namespace headrace::onnx {

namespace {

// A name that the text form can print: letters, digits and underscores.
std::string symbol_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += is_word ? c : '_';
  }
  return name.empty() || (name[0] >= '0' && name[0] <= '9') ? "n" + name : name;
}

// The sizes that the options give to named dimensions, by themselves and by the shapes of inputs.
class Sizes {
 public:
  Sizes(const Model& model, const ImportOptions& options, const std::vector<const ValueInfo*>& inputs)
      : model_(model), options_(options) {
    check_names(inputs);
    for (const auto& [name, size] : options.dims) learn(name, size, inputs);
    for (const ValueInfo* info : inputs) {
      if (const std::vector<int64_t>* shape = given(*info)) learn(*info, *shape);
    }
  }

  // The shape that the options give an input: its own entry, or its bound tensor's.
  const std::vector<int64_t>* given(const ValueInfo& info) const {
    const std::string name(info.name);
    if (const auto it = options_.bound.find(name); it != options_.bound.end()) return &it->second.shape();
    const auto it = options_.shapes.find(name);
    return it == options_.shapes.end() ? nullptr : &it->second;
  }

  std::optional<int64_t> known(const Dim& dim) const {
    if (dim.value >= 0) return dim.value;
    const auto it = symbols_.find(symbol_of(dim));
    return it == symbols_.end() ? std::nullopt : std::optional(it->second.size);
  }

 private:
  struct Known {
    int64_t size;
    std::string_view input;  // whose shape says so; empty: the options name the dimension
  };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw UserError(fmt::format(format, std::forward<Args>(args)...), {.op = {}, .place = model_.source});
  }

  void check_name(const std::string& name, std::string_view what, const std::vector<const ValueInfo*>& inputs) const {
    std::vector<std::string_view> names;
    for (const ValueInfo* info : inputs) names.push_back(info->name);
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail("{} is given for {}, but the model's inputs are: {}", what, printable(name),
           escaped(fmt::format("{}", fmt::join(names, ", "))));
  }

  void check_names(const std::vector<const ValueInfo*>& inputs) const {
    for (const auto& [name, shape] : options_.shapes) {
      check_name(name, "a shape", inputs);
      if (options_.bound.contains(name)) fail("input {} is bound and has a shape given; drop one", printable(name));
    }
    for (const auto& [name, tensor] : options_.bound) {
      check_name(name, "a constant", inputs);
      if (!tensor) fail("the constant for input {} is missing", printable(name));
    }
  }

  // A dimension that the options name.
  void learn(const std::string& name, int64_t size, const std::vector<const ValueInfo*>& inputs) {
    std::set<std::string_view> named;
    for (const ValueInfo* info : inputs) {
      if (!info->type.shape) continue;
      for (const Dim& dim : *info->type.shape) {
        if (dim.value < 0 && !symbol_of(dim).empty()) named.insert(dim.symbol);
      }
    }
    const auto it = named.find(name);
    if (it == named.end()) {
      fail("a size is given for dimension {}, but {}", printable(name),
           named.empty() ? "no dimension of the model's inputs has a name"
                         : fmt::format("the named dimensions of the model's inputs are: {}", fmt::join(named, ", ")));
    }
    if (size < 0) fail("dimension {} is given the negative size {}", printable(name), size);
    if (size > kMaxDim)
      fail("dimension {} is given the size {}, more than any machine holds; give a smaller one", printable(name), size);
    symbols_.emplace(*it, Known{size, {}});
  }

  void learn(const ValueInfo& info, const std::vector<int64_t>& shape) {
    for (const int64_t size : shape) {
      if (size < 0) fail("the shape given for input {} has the negative size {}", printable(info.name), size);
      if (size > kMaxDim) {
        fail("the shape given for input {} has the size {}, more than any machine holds; fix a smaller one",
             printable(info.name), size);
      }
    }
    if (!info.type.shape) return;
    const std::vector<Dim>& declared = *info.type.shape;
    if (declared.size() != shape.size()) {
      fail("input {} is given {} dimensions ({}), but the model declares {}: {}", printable(info.name), shape.size(),
           fmt::join(shape, ", "), declared.size(), show_dims(declared));
    }
    for (size_t i = 0; i < shape.size(); ++i) learn(info, i, declared[i], shape[i]);
  }

  void learn(const ValueInfo& info, size_t axis, const Dim& dim, int64_t size) {
    if (dim.value >= 0 && dim.value != size) {
      fail("input {} is given {} for dimension {}, which the model fixes to {}", printable(info.name), size, axis,
           dim.value);
    }
    if (dim.value >= 0 || symbol_of(dim).empty()) return;
    const auto [it, is_new] = symbols_.emplace(dim.symbol, Known{size, info.name});
    if (!is_new && it->second.size != size) {
      const std::string_view input = it->second.input;
      fail("dimension '{}' is {} by {} and {} by input {}", symbol_name(dim.symbol), it->second.size,
           input.empty() ? "its own size" : fmt::format("input {}", printable(input)), size, printable(info.name));
    }
  }

  const Model& model_;
  const ImportOptions& options_;
  std::unordered_map<std::string_view, Known> symbols_;
};

// Makes the types of inputs; a dimension's name is one symbol in all of them.
class InputTypes {
 public:
  explicit InputTypes(const Sizes& sizes) : sizes_(sizes) {}

  // Refused when the input is not a tensor of a known dtype and rank.
  TensorType type_of(const ValueInfo& info) {
    if (info.type.kind != ValueKind::kTensor) {
      throw Refused{HR_REASON_DTYPE_UNSUPPORTED,
                    fmt::format("input {} is not a tensor; only tensors are supported", printable(info.name))};
    }
    const auto dtype = find_dtype(info.type.element_type);
    if (!dtype) {
      throw Refused{HR_REASON_DTYPE_UNSUPPORTED,
                    fmt::format("input {} has element type {}, which is not supported", printable(info.name),
                                element_type_name(info.type.element_type))};
    }
    if (const std::vector<int64_t>* shape = sizes_.given(info)) return make_tensor_type(*shape, *dtype);
    if (!info.type.shape) {
      throw Refused{HR_REASON_DYNAMIC_UNSUPPORTED,
                    fmt::format("input {} has no shape in the model; give it one", printable(info.name))};
    }
    Array<PrimExpr> dims;
    for (size_t i = 0; i < info.type.shape->size(); ++i) dims.push_back(dim_of(info, i));
    return make_tensor_type(dims, *dtype);
  }

 private:
  PrimExpr dim_of(const ValueInfo& info, size_t axis) {
    const Dim& dim = (*info.type.shape)[axis];
    if (const auto size = sizes_.known(dim)) {
      if (*size <= kMaxDim) return make_int(*size);
      throw Refused{HR_REASON_SHAPE_UNSUPPORTED,
                    fmt::format("input {} has the size {} in dimension {}, more than any machine holds",
                                printable(info.name), *size, axis)};
    }
    if (symbol_of(dim).empty()) return make_prim_var(fmt::format("{}_{}", symbol_name(info.name), axis));
    PrimVar& symbol = symbols_[dim.symbol];
    if (!symbol) symbol = make_prim_var(symbol_name(dim.symbol));
    return symbol;
  }

  const Sizes& sizes_;
  std::unordered_map<std::string_view, PrimVar> symbols_;
};

GraphInput resolve(const ValueInfo& info, InputTypes& types, const Model& model, const ImportOptions& options) {
  const TensorType type = types.type_of(info);
  const auto bound = options.bound.find(std::string(info.name));
  if (bound == options.bound.end())
    return {&info, relay::make_var(std::string(info.name), type, make_span(std::string(info.name))), {}};
  if (bound->second.dtype() != type->dtype) {
    throw UserError(fmt::format("the constant for input {} is {}, but the model declares {}", printable(info.name),
                                bound->second.dtype(), type->dtype),
                    {.op = {}, .place = model.source});
  }
  return {&info, {}, bound->second.to_dense()};
}

}  // namespace

std::string_view symbol_of(const Dim& dim) {
  const bool has_letter = std::any_of(dim.symbol.begin(), dim.symbol.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  });
  return has_letter && dim.symbol != "None" ? dim.symbol : std::string_view();
}

std::string show_dims(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) {
    text += text.empty() ? "" : ", ";
    text += dim.value >= 0 ? std::to_string(dim.value) : symbol_of(dim).empty() ? "?" : std::string(dim.symbol);
  }
  return "(" + text + ")";
}

std::vector<const ValueInfo*> true_inputs(const Graph& graph) {
  std::unordered_set<std::string_view> initialised;
  for (const TensorProto& tensor : graph.initializers) initialised.insert(tensor.name);
  for (const SparseTensorProto& tensor : graph.sparse_initializers) initialised.insert(tensor.values.name);
  std::vector<const ValueInfo*> inputs;
  for (const ValueInfo& info : graph.inputs) {
    if (!initialised.contains(info.name)) inputs.push_back(&info);
  }
  return inputs;
}

std::vector<GraphInput> resolve_inputs(const Model& model, const ImportOptions& options,
                                       std::vector<NodeRefusal>& refusals) {
  const std::vector<const ValueInfo*> inputs = true_inputs(model.graph);
  const Sizes sizes(model, options, inputs);
  InputTypes types(sizes);
  std::vector<GraphInput> result;
  for (const ValueInfo* info : inputs) {
    try {
      result.push_back(resolve(*info, types, model, options));
    } catch (const Refused& refused) {
      refusals.push_back({"", "", refused.reason, refused.message, ""});
      result.push_back({info, {}, {}});
    }
  }
  return result;
}

std::vector<std::string> symbolic_dimensions(const Model& model, const ImportOptions& options) {
  const std::vector<const ValueInfo*> inputs = true_inputs(model.graph);
  const Sizes sizes(model, options, inputs);
  std::vector<std::string> result;
  for (const ValueInfo* info : inputs) {
    if (info->type.kind != ValueKind::kTensor || sizes.given(*info) != nullptr) continue;
    if (!info->type.shape) {
      result.push_back(fmt::format("{} (rank)", info->name));
      continue;
    }
    for (size_t i = 0; i < info->type.shape->size(); ++i) {
      const Dim& dim = (*info->type.shape)[i];
      if (sizes.known(dim)) continue;
      result.push_back(symbol_of(dim).empty() ? fmt::format("{}[{}]", info->name, i)
                                              : fmt::format("{}[{}] ({})", info->name, i, dim.symbol));
    }
  }
  return result;
}

}  // namespace headrace::onnx
