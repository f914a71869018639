#include "frontend/onnx/model_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/onnx/op_table.h"

namespace headrace::onnx {

namespace {

// Sums that stay far from overflow.
constexpr int64_t kGreatest = int64_t{1} << 60;
int64_t bounded_sum(int64_t a, int64_t b) { return std::min(a + b, kGreatest); }
int64_t bounded_product(int64_t a, int64_t b) { return a != 0 && b > kGreatest / a ? kGreatest : a * b; }

// Bytes of an attribute that are copied when it is read.
int64_t payload_bytes(const Attribute& attribute) {
  size_t bytes = attribute.s.size() + attribute.floats.size() * sizeof(float) + attribute.ints.size() * sizeof(int64_t);
  for (const std::string_view text : attribute.strings) bytes += text.size();
  for (const TensorProto& tensor : attribute.tensors) bytes += tensor.message.size();
  return static_cast<int64_t>(bytes);
}

// Attributes below this size are not counted: the limit on nodes bounds them.
constexpr int64_t kSmallAttribute = 1024;

}  // namespace

std::string function_label(const ModelFunction& function) {
  std::string label = is_default_domain(function.domain) ? std::string(function.name)
                                                         : fmt::format("{}.{}", function.domain, function.name);
  if (!function.overload.empty()) label += fmt::format(":{}", function.overload);
  return label;
}

ModelFunctions::Identity ModelFunctions::identity(std::string_view domain, std::string_view name,
                                                  std::string_view overload) {
  return {is_default_domain(domain) ? std::string_view() : domain, name, overload};
}

ModelFunctions::ModelFunctions(const Model& model) {
  for (const ModelFunction& function : model.functions) {
    if (!functions_.emplace(identity(function.domain, function.name, function.overload), &function).second)
      repeated_.push_back(function_label(function));
    most_nodes_ = bounded_sum(most_nodes_, std::ssize(function.nodes));
    for (const Node& node : function.nodes)
      most_bytes_ = bounded_sum(most_bytes_, static_cast<int64_t>(node.message.size()));
  }
}

const ModelFunction* ModelFunctions::find(const Node& node) const {
  if (functions_.empty() || (node.overload.empty() && is_operator(node.domain, node.op_type))) return nullptr;
  const auto it = functions_.find(identity(node.domain, node.op_type, node.overload));
  return it == functions_.end() ? nullptr : it->second;
}

// Lists the functions that are being measured from `function` on, and `function` again.
std::string ModelFunctions::path_to(const ModelFunction& function) const {
  std::vector<std::string> names;
  for (auto it = std::find(path_.begin(), path_.end(), &function); it != path_.end(); ++it)
    names.push_back(function_label(**it));
  names.push_back(function_label(function));
  return fmt::format("{}", fmt::join(names, " calls "));
}

// Visits the callees depth first, at most kMostNestedCalls deep, and each function once.
const InlinedSize& ModelFunctions::measure(const ModelFunction& function) {
  if (const auto known = sizes_.find(&function); known != sizes_.end()) return known->second;
  path_.push_back(&function);
  InlinedSize size;
  add_nodes(function, size);
  path_.pop_back();
  return sizes_.emplace(&function, std::move(size)).first->second;
}

void ModelFunctions::add_nodes(const ModelFunction& function, InlinedSize& size) {
  for (const Node& node : function.nodes)
    size.bytes = bounded_sum(size.bytes, static_cast<int64_t>(node.message.size()));
  std::vector<const std::vector<Node>*> lists{&function.nodes};
  while (!lists.empty() && size.error.empty()) {
    const std::vector<Node>& nodes = *lists.back();
    lists.pop_back();
    size.nodes = bounded_sum(size.nodes, std::ssize(nodes));
    for (const Node& node : nodes) {
      if (const ModelFunction* callee = find(node)) add_callee(*callee, size);
      if (!size.error.empty()) return;
      for (const Attribute& attribute : node.attributes) {
        for (const Graph& graph : attribute.graphs) lists.push_back(&graph.nodes);
      }
    }
  }
}

void ModelFunctions::add_callee(const ModelFunction& callee, InlinedSize& size) {
  if (std::find(path_.begin(), path_.end(), &callee) != path_.end()) {
    size.error = fmt::format("the functions of the model must not call themselves: {}", path_to(callee));
    return;
  }
  const std::string too_deep =
      fmt::format("functions call each other more than {} levels deep; inline some of them", kMostNestedCalls);
  if (std::ssize(path_) >= kMostNestedCalls) {
    size.error = too_deep;
    return;
  }
  const InlinedSize& own = measure(callee);
  size.nodes = bounded_sum(size.nodes, own.nodes);
  size.bytes = bounded_sum(size.bytes, own.bytes);
  size.depth = std::max(size.depth, own.depth + 1);
  size.error = size.depth > kMostNestedCalls ? too_deep : own.error;
}

std::string ModelFunctions::admit(const FunctionCall& call) {
  const InlinedSize& size = measure(*call.function);
  if (!size.error.empty()) return size.error;
  if (call.caller == nullptr) {
    nodes_ = bounded_sum(nodes_, size.nodes);
    bytes_ = bounded_sum(bytes_, size.bytes);
  }
  for (const auto& [name, attribute] : call.attributes) {
    const int64_t payload = payload_bytes(*attribute);
    // Each node of the function may read it.
    if (payload > kSmallAttribute) bytes_ = bounded_sum(bytes_, bounded_product(payload, size.nodes));
  }
  if (nodes_ <= most_nodes_ && bytes_ <= most_bytes_) return "";
  return fmt::format(
      "the calls of the model's functions inline too much: {} nodes of {} bytes up to this one, at most {} nodes and "
      "{} "
      "bytes are supported; call functions fewer times, or split the model",
      nodes_, bytes_, most_nodes_, most_bytes_);
}

}  // namespace headrace::onnx
