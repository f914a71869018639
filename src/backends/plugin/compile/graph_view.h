// Regions as plugins see them: hr_graph of headrace/backend_abi.h.
#pragma once

#include <headrace/backend_abi.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "relay/expr.h"
#include "tensor/ndarray.h"

namespace headrace::backends::plugin {

struct DeleteGraph {
  void operator()(hr_graph* graph) const;
};
using Graph = std::unique_ptr<hr_graph, DeleteGraph>;

// Returns the functions that read graphs.
const hr_graph_api* graph_api();

// Returns the view of a typed function, whose nodes the view keeps. Refuses what the view cannot show: control flow,
// functions other than composites, and values that are not tensors or tuples of tensors.
Expected<Graph> make_graph(const relay::FunctionNode& function, const std::string& name);

// Adds the constants of a graph and of its composites, by the identity of their content.
void collect_constants(const hr_graph* graph, std::map<std::string, NDArray, std::less<>>& constants);

// Returns the view of one typed call of an op or of a composite, with an input or a constant for each operand. The call
// is the last node. Of the calls that its operands come from, those among `producers`, few of them, are calls in the
// view as well.
Expected<Graph> make_graph(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers = {});

}  // namespace headrace::backends::plugin
