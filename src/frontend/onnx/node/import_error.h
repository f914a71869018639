// The error of an import: a list of mistakes, as text for people and as codes for programs.
#pragma once

#include <headrace/reason.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace headrace::onnx {

// A node, or another part of a model, that cannot be imported.
struct NodeRefusal {
  std::string node;  // the node's name, or its first output's where it has none; empty: the graph itself
  std::string op;    // "Conv", "com.example.Foo"; empty: the graph itself
  hr_reason reason = HR_REASON_NONE;
  std::string message;         // the mistake and what to do about it
  std::string value;           // for HR_REASON_DATA_DEPENDENT: the name of the value that must be known when importing
  bool may_be_claimed = true;  // backends are asked about the node, where some are chosen
};

// All refusals of one model. Nodes that cannot be imported only because they depend on refused ones are not listed.
class ImportError : public UserError {
 public:
  // `has_asked_backends`: backends have refused the operators that are not supported, so the text suggests none.
  ImportError(std::vector<NodeRefusal> refusals, const std::string& source, bool has_asked_backends);
  const std::vector<NodeRefusal>& refusals() const { return refusals_; }

 private:
  std::vector<NodeRefusal> refusals_;
};

}  // namespace headrace::onnx
