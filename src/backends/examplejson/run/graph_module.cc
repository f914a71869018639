#include "backends/examplejson/run/graph_module.h"

#include <fcntl.h>

#include <cerrno>
#include <system_error>

#include "backends/examplejson/run/graph_text.h"
#include "base/descriptor.h"
#include "base/read_text.h"
#include "base/write_all.h"
#include "tensor/ndarray.h"
#include "tensor/strides.h"

namespace headrace::backends::examplejson {

namespace {

// Returns the elements of an argument.
float* elements_of(const Subgraph& graph, Args args, int32_t index) {
  const RawValue& raw = args[index];
  const bool is_pointer = raw.type_index == type_index::kDLTensorPtr;
  if (!is_pointer && !matches_item<NDArray>(raw))
    throw_user_error("argument {} of '{}' is not a tensor", index, graph.name);
  const NDArray array = is_pointer ? NDArray() : args.at<NDArray>(index);
  const DLTensor& tensor = is_pointer ? *static_cast<const DLTensor*>(raw.v.v_ptr) : array.tensor();
  const bool is_float = tensor.dtype.code == kDLFloat && tensor.dtype.bits == 32 && tensor.dtype.lanes == 1;
  const bool fits = tensor.device.device_type == kDLCPU && is_float &&
                    std::equal(graph.shape.begin(), graph.shape.end(), tensor.shape, tensor.shape + tensor.ndim);
  if (!fits)
    throw_user_error("argument {} of '{}' is not a float32 tensor of shape ({}) on the CPU", index, graph.name,
                     fmt::join(graph.shape, ", "));
  if (tensor.strides != nullptr && !is_dense(graph.shape, {tensor.strides, graph.shape.size()}))
    throw_user_error("argument {} of '{}' is not contiguous", index, graph.name);
  return reinterpret_cast<float*>(static_cast<std::byte*>(tensor.data) + tensor.byte_offset);
}

float value_of(const GraphNode& node, const std::vector<float>& values) {
  const float a = values[node.a], b = values[node.b];
  switch (node.op) {
    case GraphOp::add:
      return a + b;
    case GraphOp::sub:
      return a - b;
    default:
      return a * b;
  }
}

// Every tensor has one shape, so the graph is computed element by element.
Value run(const Subgraph& graph, Args args) {
  const auto num_inputs = static_cast<int32_t>(graph.num_inputs);
  if (args.size() != num_inputs + 1)
    throw_user_error("'{}' takes {} tensors, its inputs and its output, and got {}", graph.name, num_inputs + 1,
                     args.size());
  std::vector<const float*> inputs;
  for (int32_t i = 0; i < num_inputs; ++i) inputs.push_back(elements_of(graph, args, i));
  float* output = elements_of(graph, args, num_inputs);
  if (matches_item<NDArray>(args[num_inputs]) && args.at<Ref<NDArrayObj>>(num_inputs)->read_only)
    throw_user_error("argument {} of '{}' is read-only, and the output is written into it", num_inputs, graph.name);
  std::vector<float> values(graph.nodes.size());
  const int64_t count = num_elements(Shape(graph.shape.begin(), graph.shape.end()));
  for (int64_t i = 0; i < count; ++i) {
    size_t input = 0;
    for (size_t k = 0; k < graph.nodes.size(); ++k) {
      const GraphNode& node = graph.nodes[k];
      values[k] = node.op == GraphOp::input ? inputs[input++][i] : value_of(node, values);
    }
    output[i] = values.back();
  }
  const bool is_array = matches_item<NDArray>(args[num_inputs]);
  return is_array ? Value(args.at<NDArray>(num_inputs)) : Value();
}

class GraphBody : public runtime::ModuleBody {
 public:
  explicit GraphBody(std::string text) : text_(std::move(text)) {
    for (Subgraph& graph : read_graph_text(text_))
      graphs_.push_back(std::make_shared<const Subgraph>(std::move(graph)));
  }
  std::string_view type_key() const override { return kModuleKind; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    for (const std::shared_ptr<const Subgraph>& graph : graphs_) {
      if (graph->name == name) return PackedFunc([graph](Args args) { return run(*graph, args); });
    }
    return {};
  }
  // A text that is cut off after a line is a text: the size says whether it is whole.
  std::string save_to_binary(const runtime::Module&) const override {
    return fmt::format("{}\n{}", text_.size(), text_);
  }
  // Writes the text, which load_module reads.
  void save_to_file(const std::string& path, const std::string& format, const runtime::Module&) const override {
    if (!format.empty() && format != kModuleKind)
      throw_user_error("graphs of examplejson have no file format '{}'; leave it out", format);
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.number() < 0 || !write_all(file.number(), std::as_bytes(std::span(text_))))
      throw_user_error("cannot write '{}': {}", path, std::generic_category().message(errno));
  }
  std::string get_source(const std::string&) const override { return text_; }

 private:
  std::string text_;
  std::vector<std::shared_ptr<const Subgraph>> graphs_;
};

}  // namespace

runtime::Module make_graph_module(const std::string& text) {
  return runtime::Module(std::make_unique<GraphBody>(text));
}

// Takes what a module was saved as, and, as Relay users know it, a bare text, whose subgraphs have names.
static runtime::Module load_graph_module(const std::string& bytes) {
  if (!bytes.empty() && (bytes[0] < '0' || bytes[0] > '9')) return make_graph_module(bytes);
  const size_t end = bytes.find('\n');
  if (end == std::string::npos || bytes.substr(0, end) != std::to_string(bytes.size() - end - 1))
    throw_user_error("a module of examplejson is not whole: it does not begin with the size of its text");
  return make_graph_module(bytes.substr(end + 1));
}

void register_loaders() {
  runtime::register_module_loader(kModuleKind, &load_graph_module);
  register_global("runtime.module.loadfile_examplejson", make_packed([](const std::string& path, const std::string&) {
                    return make_graph_module(read_text(path, "examplejson graphs"));
                  }));
  register_global("runtime.module.examplejson_module_create",
                  make_packed([](const std::string& text) { return make_graph_module(text); }));
}

}  // namespace headrace::backends::examplejson
