#include "backends/onednn/read_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <map>

#include "backends/onednn/read_op.h"

namespace headrace_onednn {

// Each is one function of one value. The half of a gelu may have been moved into the weights of the layer that reads
// it.
const char* const kPatterns = R"({
  onednn.gelu: { %0 = _; multiply(multiply(%0, const), add(erf(divide(%0, const)), const)) },
  onednn.gelu: { %0 = _; multiply(multiply(%0, const), add(erf(multiply(%0, const)), const)) },
  onednn.gelu: { %0 = _; multiply(multiply(%0, add(erf(divide(%0, const)), const)), const) },
  onednn.gelu: { %0 = _; multiply(multiply(%0, add(erf(multiply(%0, const)), const)), const) },
  onednn.gelu: { %0 = _; multiply(%0, multiply(add(erf(divide(%0, const)), const), const)) },
  onednn.gelu: { %0 = _; multiply(%0, multiply(add(erf(multiply(%0, const)), const), const)) },
  onednn.twice_gelu: { %0 = _; multiply(%0, add(erf(divide(%0, const)), const)) },
  onednn.twice_gelu: { %0 = _; multiply(%0, add(erf(multiply(%0, const)), const)) },
  onednn.swish: { %0 = _; multiply(%0, sigmoid(%0)) }
})";

namespace {

constexpr size_t kMaxRank = 6;  // that primitives of every kind take, with room for groups

std::optional<No> fault_of(const hr_tensor_type& type, const char* what) {
  if (type.dtype.code != kDLFloat || type.dtype.bits != 32 || type.dtype.lanes != 1)
    return No{HR_REASON_DTYPE_UNSUPPORTED, std::string(what) + " is not of float32"};
  if (static_cast<size_t>(type.ndim) > kMaxRank)
    return No{HR_REASON_SHAPE_UNSUPPORTED, std::string(what) + " has more than six axes"};
  for (int32_t i = 0; i < type.ndim; ++i) {
    if (type.shape[i] < 0) return No{HR_REASON_DYNAMIC_UNSUPPORTED, std::string(what) + " has a size without a number"};
    if (type.shape[i] == 0) return No{HR_REASON_SHAPE_UNSUPPORTED, std::string(what) + " is empty"};
  }
  return std::nullopt;
}

Dims dims_of(const hr_tensor_type& type) { return {type.shape, type.shape + type.ndim}; }

// The number of a constant of one element; NaN for any other node.
double scalar_of(const hr_graph_api& api, const hr_graph* graph, uint32_t node) {
  const DLTensor* tensor = api.constant(graph, node).tensor;
  if (tensor == nullptr || tensor->dtype.code != kDLFloat || tensor->dtype.bits != 32) return std::nan("");
  int64_t elements = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) elements *= tensor->shape[i];
  if (elements != 1) return std::nan("");
  float number = 0;
  std::memcpy(&number, static_cast<const char*>(tensor->data) + tensor->byte_offset, sizeof number);
  return number;
}

bool is_near(double value, double wanted) { return std::abs(value - wanted) <= 1e-5; }

bool is_call_of(const hr_graph_api& api, const hr_graph* match, uint32_t node, const char* op) {
  return api.kind(match, node) == HR_NODE_CALL && std::strcmp(api.op(match, node), op) == 0;
}

// Returns the number of the last operand that is a constant of one element; NaN where there is none.
double number_of(const hr_graph_api& api, const hr_graph* match, uint32_t node) {
  double number = std::nan("");
  for (uint32_t i = 0; i < api.num_operands(match, node); ++i) {
    const uint32_t operand = api.operand(match, node, i);
    if (api.kind(match, operand) == HR_NODE_CONST) number = scalar_of(api, match, operand);
  }
  return number;
}

// Returns whether a node is x / sqrt(2), the operand of gelu's erf.
bool is_erf_operand(const hr_graph_api& api, const hr_graph* match, uint32_t node) {
  const double number = number_of(api, match, node);
  if (is_call_of(api, match, node, "divide")) return is_near(number, std::sqrt(2.0));
  return is_call_of(api, match, node, "multiply") && is_near(number, std::sqrt(0.5));
}

// The constants of x / 2 * (1 + erf(x / sqrt(2))), or of twice that, each where the formula has it. The pattern has
// their order.
bool is_gelu(const hr_graph_api& api, const hr_graph* match, bool is_twice) {
  bool has_half = false, has_one = false, has_root = false;
  std::set<uint32_t> in_erf;
  for (uint32_t node = 0; node < api.num_nodes(match); ++node) {
    if (is_call_of(api, match, node, "erf")) in_erf.insert(api.operand(match, node, 0));
  }
  for (uint32_t node = 0; node < api.num_nodes(match); ++node) {
    if (in_erf.contains(node)) {
      has_root = is_erf_operand(api, match, node);
    } else if (is_call_of(api, match, node, "multiply")) {
      has_half |= is_near(number_of(api, match, node), 0.5);
    } else if (is_call_of(api, match, node, "add")) {
      bool reads_erf = false;
      for (uint32_t i = 0; i < api.num_operands(match, node); ++i)
        reads_erf |= is_call_of(api, match, api.operand(match, node, i), "erf");
      has_one |= reads_erf && is_near(number_of(api, match, node), 1);
    }
  }
  return has_half != is_twice && has_one && has_root;
}

// The ops of a match, sorted.
std::vector<std::string> ops_of(const hr_graph_api& api, const hr_graph* match) {
  std::vector<std::string> ops;
  for (uint32_t node = 0; node < api.num_nodes(match); ++node) {
    if (const char* op = api.op(match, node); op != nullptr && *op != 0) ops.emplace_back(op);
  }
  std::sort(ops.begin(), ops.end());
  return ops;
}

// Whether a match is x * sigmoid(x).
bool is_swish(const hr_graph_api& api, const hr_graph* match, uint32_t root) {
  if (ops_of(api, match) != std::vector<std::string>{"multiply", "sigmoid"} || api.num_operands(match, root) != 2)
    return false;
  const uint32_t a = api.operand(match, root, 0), b = api.operand(match, root, 1);
  const uint32_t x = api.kind(match, a) == HR_NODE_INPUT ? a : b, y = x == a ? b : a;
  return api.kind(match, x) == HR_NODE_INPUT && api.kind(match, y) == HR_NODE_CALL && api.operand(match, y, 0) == x;
}

// Whether a match has the ops of gelu, times two or not.
bool has_ops_of_gelu(const hr_graph_api& api, const hr_graph* match, bool is_twice) {
  std::vector<std::string> rest{"add", "erf", "multiply"};
  if (!is_twice) rest.emplace_back("multiply");
  for (const char* last : {"divide", "multiply"}) {
    std::vector<std::string> all = rest;
    all.emplace_back(last);
    std::sort(all.begin(), all.end());
    if (ops_of(api, match) == all) return true;
  }
  return false;
}

using ConstantsByContent = std::map<std::string, int32_t>;

// Reads one graph.
class GraphReader {
 public:
  GraphReader(const hr_graph_api& api, const hr_graph* graph, Network& network, ConstantsByContent& constants)
      : api_(api), graph_(graph), network_(network), constants_(constants) {}

  // Reads a region, whose inputs and outputs become those of the network.
  std::optional<No> read() {
    if (auto fault = read_nodes()) return fault;
    network_.outputs = outputs();
    return std::nullopt;
  }

  // Reads a composite's body, whose inputs are these tensors, and whose outputs become `results`.
  std::optional<No> read_body(const std::vector<int32_t>& operands, std::vector<int32_t>& results) {
    operands_ = &operands;
    if (auto fault = read_nodes()) return fault;
    results = outputs();
    return std::nullopt;
  }

 private:
  std::optional<No> read_nodes() {
    const uint32_t num_nodes = api_.num_nodes(graph_);
    tensors_.resize(num_nodes);
    for (uint32_t node = 0; node < num_nodes; ++node) {
      if (auto fault = read_node(node)) return fault;
    }
    return std::nullopt;
  }

  std::vector<int32_t> outputs() const {
    std::vector<int32_t> all;
    for (uint32_t i = 0; i < api_.num_outputs(graph_); ++i) {
      uint32_t result = 0;
      const uint32_t node = api_.output(graph_, i, &result);
      all.push_back(tensors_[node].at(result));
    }
    return all;
  }

  std::optional<No> read_node(uint32_t node) {
    for (uint32_t i = 0; i < api_.num_results(graph_, node); ++i) {
      if (auto fault = fault_of(api_.result_type(graph_, node, i), "a tensor")) return fault;
    }
    switch (api_.kind(graph_, node)) {
      case HR_NODE_INPUT:
        add_input(node);
        return std::nullopt;
      case HR_NODE_CONST:
        add_constant(node);
        return std::nullopt;
      case HR_NODE_TUPLE:
        tensors_[node] = operands_of(node);
        return std::nullopt;
      case HR_NODE_ITEM:
        return read_item(node);
      case HR_NODE_CALL:
        return read_call(node);
      case HR_NODE_COMPOSITE:
        return read_composite(node);
      default:
        return No{HR_REASON_OP_UNSUPPORTED, "the graph has a node of a kind that the backend does not know"};
    }
  }

  std::optional<No> read_item(uint32_t node) {
    const std::vector<int32_t>& all = tensors_[api_.operand(graph_, node, 0)];
    const uint32_t index = api_.index(graph_, node);
    if (index >= all.size() || api_.num_results(graph_, node) != 1)
      return No{HR_REASON_OP_UNSUPPORTED, "the graph has an item that is not a tensor"};
    tensors_[node] = {all[index]};
    return std::nullopt;
  }

  std::optional<No> read_call(uint32_t node) {
    if (api_.num_results(graph_, node) != 1) return No{HR_REASON_OP_UNSUPPORTED, "it has several results"};
    OpOrNo made = read_op({api_, graph_, node, operands_of(node)}, network_);
    if (made.no) return made.no;
    tensors_[node] = {made.tensor};
    return std::nullopt;
  }

  void add_input(uint32_t node) {
    if (operands_ != nullptr) {
      for (uint32_t i = 0; i < api_.num_results(graph_, node); ++i)
        tensors_[node].push_back(operands_->at(num_operands_read_++));
      return;
    }
    tensors_[node] = {network_.add_tensor(dims_of(api_.result_type(graph_, node, 0)))};
    network_.inputs.push_back(tensors_[node][0]);
  }

  // Each of the backend's own patterns is an eltwise op of the one operand, perhaps times two. A program may have
  // composites of its own, also under these names: they are what their bodies are.
  std::optional<No> read_composite(uint32_t node) {
    const std::string pattern = api_.op(graph_, node);
    const std::vector<int32_t> operands = operands_of(node);
    const hr_graph* body = api_.body(graph_, node);
    const bool is_own = pattern == "onednn.gelu" || pattern == "onednn.twice_gelu" || pattern == "onednn.swish";
    if (!is_own || operands.size() != 1 || find_fault_in_match(api_, pattern, body))
      return GraphReader(api_, body, network_, constants_).read_body(operands, tensors_[node]);
    const Dims dims = dims_of(api_.result_type(graph_, node, 0));
    int32_t result = add_eltwise(operands[0], dims, pattern == "onednn.swish" ? Algorithm::swish : Algorithm::gelu, 1);
    if (pattern == "onednn.twice_gelu") result = add_eltwise(result, dims, Algorithm::linear, 2);
    tensors_[node] = {result};
    return std::nullopt;
  }

  int32_t add_eltwise(int32_t operand, const Dims& dims, Algorithm algorithm, float alpha) {
    const int32_t output = network_.add_tensor(dims);
    network_.ops.push_back({.kind = OpKind::eltwise,
                            .algorithm = algorithm,
                            .inputs = {operand},
                            .output = output,
                            .numbers = {alpha, 0}});
    return output;
  }

  void add_constant(uint32_t node) {
    const hr_constant constant = api_.constant(graph_, node);
    const Dims dims = dims_of(api_.result_type(graph_, node, 0));
    const std::string key = constant.content_id;
    auto [known, is_new] = constants_.try_emplace(key, static_cast<int32_t>(network_.constants.size()));
    if (is_new) {
      const auto* data = reinterpret_cast<const float*>(static_cast<const char*>(constant.tensor->data) +
                                                        constant.tensor->byte_offset);
      network_.constants.push_back({.content_id = key, .data = data, .size = num_elements(dims)});
    }
    const int32_t tensor = network_.add_tensor(dims);
    network_.tensors.back().constant = known->second;
    tensors_[node] = {tensor};
  }

  std::vector<int32_t> operands_of(uint32_t node) const {
    std::vector<int32_t> operands;
    for (uint32_t i = 0; i < api_.num_operands(graph_, node); ++i) {
      const std::vector<int32_t>& own = tensors_[api_.operand(graph_, node, i)];
      operands.insert(operands.end(), own.begin(), own.end());
    }
    return operands;
  }

  const hr_graph_api& api_;
  const hr_graph* graph_;
  Network& network_;
  ConstantsByContent& constants_;                   // those of the network
  std::vector<std::vector<int32_t>> tensors_;       // tensors per node, one for each result
  const std::vector<int32_t>* operands_ = nullptr;  // tensors that a body's inputs stand for
  size_t num_operands_read_ = 0;
};

}  // namespace

std::optional<No> find_fault(const hr_graph_api& api, const hr_graph* graph, uint32_t node) {
  Network network;
  std::vector<int32_t> operands;
  for (uint32_t i = 0; i < api.num_operands(graph, node); ++i) {
    const uint32_t operand = api.operand(graph, node, i);
    for (uint32_t k = 0; k < api.num_results(graph, operand); ++k) {
      const hr_tensor_type type = api.result_type(graph, operand, k);
      if (auto fault = fault_of(type, "an operand")) return fault;
      operands.push_back(network.add_tensor(dims_of(type)));
    }
  }
  if (api.num_results(graph, node) != 1) return No{HR_REASON_OP_UNSUPPORTED, "it has several results"};
  if (auto fault = fault_of(api.result_type(graph, node, 0), "its result")) return fault;
  if (operands.empty()) return No{HR_REASON_OP_UNSUPPORTED, "it has no operands"};
  return read_op({api, graph, node, operands}, network).no;
}

std::optional<No> find_fault_in_match(const hr_graph_api& api, const std::string& pattern, const hr_graph* match) {
  if (api.num_outputs(match) != 1) return No{HR_REASON_OP_UNSUPPORTED, "it has several results"};
  uint32_t result = 0;
  const uint32_t root = api.output(match, 0, &result);
  if (auto fault = fault_of(api.result_type(match, root, result), "its result")) return fault;
  uint32_t num_inputs = 0, input = 0;
  for (uint32_t node = 0; node < api.num_nodes(match); ++node) {
    if (api.kind(match, node) != HR_NODE_INPUT) continue;
    input = node;
    ++num_inputs;
  }
  if (num_inputs != 1) return No{HR_REASON_OP_UNSUPPORTED, "it is of several values"};
  if (auto fault = fault_of(api.result_type(match, input, 0), "its operand")) return fault;
  if (dims_of(api.result_type(match, input, 0)) != dims_of(api.result_type(match, root, result)))
    return No{HR_REASON_SHAPE_UNSUPPORTED, "its operand is broadcast"};
  const bool is_twice = pattern == "onednn.twice_gelu";
  if (pattern == "onednn.swish" && !is_swish(api, match, root))
    return No{HR_REASON_OP_UNSUPPORTED, "it is not x * sigmoid(x)"};
  if (pattern != "onednn.swish" && !(is_gelu(api, match, is_twice) && has_ops_of_gelu(api, match, is_twice)))
    return No{HR_REASON_OP_UNSUPPORTED, "its constants are not those of gelu"};
  return std::nullopt;
}

std::optional<No> read_graph(const hr_graph_api& api, const hr_graph* graph, Network& network) {
  network.name = api.name(graph);
  ConstantsByContent constants;
  return GraphReader(api, graph, network, constants).read();
}

}  // namespace headrace_onednn
