// One call of an op as ops of a network. Inner header of this backend.
#pragma once

#include "backends/onednn/read_graph.h"

namespace headrace_onednn {

// A call: its node, and the tensors of a network that its operands are.
struct CallView {
  const hr_graph_api& api;
  const hr_graph* graph;
  uint32_t node;
  std::vector<int32_t> operands;  // those of a tuple one after the other

  std::string op() const { return api.op(graph, node); }
  Dims result() const;
  // Return attributes, or what the op's default is taken to be.
  int64_t integer(const char* name, int64_t otherwise) const;
  double real(const char* name, double otherwise) const;
  std::string text(const char* name, const std::string& otherwise) const;
  Dims integers(const char* name) const;
};

// Adds the op to the network and returns the tensor of its result, or why it cannot.
struct OpOrNo {
  int32_t tensor = -1;
  std::optional<No> no = {};
};
OpOrNo read_op(const CallView& call, Network& network);

}  // namespace headrace_onednn
