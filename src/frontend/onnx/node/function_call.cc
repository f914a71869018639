#include "frontend/onnx/node/function_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace headrace::onnx {

namespace {

// Returns the attribute that a node of a function has; null if it refers to one that the call does not give.
const Attribute* resolve(const Attribute& attribute, const FunctionCall* call) {
  if (attribute.ref_name.empty()) return &attribute;
  if (call == nullptr) return nullptr;
  const auto it = call->attributes.find(attribute.ref_name);
  return it == call->attributes.end() ? nullptr : it->second;
}

bool declares(const ModelFunction& function, std::string_view attribute) {
  const auto has_name = [&](const Attribute& one) { return one.name == attribute; };
  return std::find(function.attributes.begin(), function.attributes.end(), attribute) != function.attributes.end() ||
         std::any_of(function.default_attributes.begin(), function.default_attributes.end(), has_name);
}

}  // namespace

std::optional<int64_t> default_opset(const ModelFunction& function) {
  for (const OpsetImport& import : function.opset_imports) {
    if (is_default_domain(import.domain)) return import.version;
  }
  return std::nullopt;
}

const Node* find_default_node(const ModelFunction& function) {
  std::vector<const std::vector<Node>*> lists{&function.nodes};
  while (!lists.empty()) {
    const std::vector<Node>& nodes = *lists.back();
    lists.pop_back();
    for (const Node& node : nodes) {
      if (is_default_domain(node.domain)) return &node;
      for (const Attribute& attribute : node.attributes) {
        for (const Graph& graph : attribute.graphs) lists.push_back(&graph.nodes);
      }
    }
  }
  return nullptr;
}

std::string bind_attributes(FunctionCall& call) {
  for (const Attribute& attribute : call.node->attributes) {
    if (!declares(*call.function, attribute.name))
      return fmt::format("attribute {} is not an attribute of the function", printable(attribute.name));
    const Attribute* value = resolve(attribute, call.caller);
    if (value == nullptr) continue;
    if (value->kind == AttributeKind::kGraph || value->kind == AttributeKind::kGraphs || !value->graphs.empty())
      return fmt::format("attribute {} is a graph, which functions of the model cannot take",
                         printable(attribute.name));
    if (!call.attributes.emplace(attribute.name, value).second)
      return fmt::format("attribute {} is given twice", printable(attribute.name));
  }
  for (const Attribute& attribute : call.function->default_attributes) {
    if (attribute.ref_name.empty() && attribute.graphs.empty()) call.attributes.emplace(attribute.name, &attribute);
  }
  return "";
}

}  // namespace headrace::onnx
