// The functions of a model (ModelProto.functions): which one a node calls, and how much a call inlines.
//
// The importer inlines each call: it imports the function's nodes with the call's values under the names of the
// function's inputs. The limits below keep that in proportion to the model, because functions that call functions twice
// each grow exponentially.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>

#include "frontend/onnx/node/function_call.h"

namespace headrace::onnx {

// The most nodes, and bytes of encoded nodes, that all calls of a model inline. Every function may be inlined once in
// addition.
inline constexpr int64_t kMostInlinedNodes = int64_t{1} << 18;
inline constexpr int64_t kMostInlinedBytes = int64_t{1} << 28;
// The most calls within each other. It bounds the importer's use of the stack.
inline constexpr int kMostNestedCalls = 64;

// The nodes and bytes that calling a function adds to a program, with all that the function calls in turn.
struct InlinedSize {
  int64_t nodes = 0;
  int64_t bytes = 0;  // size of the encoded nodes
  int depth = 1;      // calls within each other, with the call of the function
  std::string error;  // why the function cannot be called; empty if it can
};

class ModelFunctions {
 public:
  // Keeps a reference to the model.
  explicit ModelFunctions(const Model& model);

  // Returns the function that a node calls; null if the node is an operator. A supported operator takes precedence over
  // a function of its name, as in onnxruntime, unless the node names an overload.
  const ModelFunction* find(const Node& node) const;
  // Returns the names of functions that the model defines several times.
  const std::vector<std::string>& repeated() const { return repeated_; }

  // Counts a call towards the limits: one of the graph with all calls that the function makes in turn, any call with
  // its attributes. Returns why it cannot be inlined, in a sentence; empty if it can. Call once for each call.
  std::string admit(const FunctionCall& call);

 private:
  // Domain, name and overload. The default domain is empty.
  using Identity = std::tuple<std::string_view, std::string_view, std::string_view>;

  static Identity identity(std::string_view domain, std::string_view name, std::string_view overload);
  const InlinedSize& measure(const ModelFunction& function);
  void add_nodes(const ModelFunction& function, InlinedSize& size);
  void add_callee(const ModelFunction& callee, InlinedSize& size);
  std::string path_to(const ModelFunction& function) const;

  std::map<Identity, const ModelFunction*> functions_;
  std::vector<std::string> repeated_;
  std::unordered_map<const ModelFunction*, InlinedSize> sizes_;
  std::vector<const ModelFunction*> path_;  // the functions that are being measured
  int64_t most_nodes_ = kMostInlinedNodes;
  int64_t most_bytes_ = kMostInlinedBytes;
  int64_t nodes_ = 0, bytes_ = 0;  // sums over all calls so far
};

// "local.Gelu", or "local.Gelu:half" for the overload `half`.
std::string function_label(const ModelFunction& function);

}  // namespace headrace::onnx
