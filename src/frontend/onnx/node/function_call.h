// A call of a function of the model (ModelProto.functions), whose nodes are imported in place of the call.
#pragma once

#include <map>
#include <optional>

#include "frontend/onnx/file/model.h"

namespace headrace::onnx {

// The attributes of a function that a call or a default gives, by name. None of them refers to another attribute.
using AttributeBindings = std::map<std::string_view, const Attribute*>;

// A call whose function's nodes are imported.
struct FunctionCall {
  const ModelFunction* function = nullptr;
  const Node* node = nullptr;            // the node that calls
  const FunctionCall* caller = nullptr;  // the call that `node` belongs to; null: it is a node of the graph
  std::string label;                     // label of `node`, after those of all calls around it
  AttributeBindings attributes;
  int64_t opset = 0;  // the version of the default operator set in the function
};

// Returns the version of the default operator set that the function imports; nullopt if it imports none.
std::optional<int64_t> default_opset(const ModelFunction& function);
// Returns a node of the function, or of its subgraphs, that is an operator of the default domain; null if there is
// none.
const Node* find_default_node(const ModelFunction& function);

// Sets the call's attributes: those of its node, resolved by the attributes of the caller, and defaults for the others.
// Returns why that is not possible, in a sentence; empty if it is.
std::string bind_attributes(FunctionCall& call);

}  // namespace headrace::onnx
