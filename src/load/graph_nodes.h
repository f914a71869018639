// The graph of a program in the terms that users of Relay know: nodes with inputs, heads, and a table of tensors.
#pragma once

#include "artifact/manifest.h"
#include "object/map.h"

namespace headrace::load {

// Describes the program's steps as nodes, by the keys of Relay's graph JSON:
//   nodes         op "null" for each input and each constant ("p0", "p1" ...), then op "tvm_op" for each step, with
//                 `attrs`: func_name (the kernel; "__copy" for a copy), num_inputs, num_outputs; `inputs` are triples
//                 of node, output of the node and 0
//   arg_nodes     the nodes of inputs and constants
//   heads         for each result the node that writes it, as a triple; the last one where several steps write parts
//   node_row_ptr  the first row in `attrs` of each node, and their number at the end
//   attrs         shape, dltype and storage_id, a row for each input, constant and output of a step
// A step that reads what several steps wrote parts of has all of them as inputs. Views are not nodes.
Map<std::string, Value> graph_nodes(const artifact::Program& program, size_t num_weights);

}  // namespace headrace::load
