// The graph of a placed program, for people and their tools: ops, the tensors between them, and the calls of regions
// that hold them. Constants are not nodes.
//
//   def @main(%x) { @region(nn.softmax(%x)) }     input x -> nn.softmax -> [exp, in block 0] -> output output0
//   def @region(%a, Compiler="b") { exp(%a) }
#pragma once

#include "partition/place.h"
#include "partition/regions.h"

namespace headrace::partition {

// One tensor that a node reads or writes.
struct GraphTensor {
  std::string dtype = {};          // "float32"; the text of the type where the value is not a tensor
  std::optional<Shape> shape;      // nothing: not a tensor, or not all of its sizes are numbers
  std::optional<int64_t> n_bytes;  // size of the elements; nothing where `shape` is nothing
};

// Why a node is not on a backend that it could have been given to.
struct GraphAlternative {
  std::string backend;
  hr_reason reason = HR_REASON_NONE;
  std::string message;
};

enum class GraphNodeKind : uint8_t {
  kInput,    // a parameter of the program
  kOp,       // a call of an op: a row of the placement
  kControl,  // a value that is not a call of an op and joins others, such as an `if` or a call of a function
  kOutput,   // a tensor of the program's result
};
// Returns "input", "op", "control", "output".
std::string_view name_of(GraphNodeKind kind);

struct GraphNode {
  GraphNodeKind kind = GraphNodeKind::kOp;
  std::string name = {};      // the op's place in the model, as in its row; the name of an input or an output
  std::string op = {};        // "nn.conv2d"; "if"; empty for inputs and outputs
  int32_t placement = kNone;  // its row
  int32_t block = kNone;      // the call of a region that holds it
  std::vector<GraphTensor> inputs = {};             // the tensors of its arguments, in order, constants too
  std::vector<GraphTensor> outputs = {};            // the tensors of its value
  std::vector<GraphAlternative> alternatives = {};  // one for each other backend of the list, then for "native"
};

// A tensor on its way: output `output` of node `from` is input `input` of node `to`.
struct GraphEdge {
  int32_t from, output, to, input;
  double border_seconds = 0;  // time of changes of layout where it leaves and enters regions; the driver sets it
};

// One call of a region. A region that is called twice is two blocks, whose ops have the same rows.
struct GraphBlock {
  std::string region;
  std::string backend;
};

struct ProgramGraph {
  std::vector<GraphNode> nodes;  // inputs, then ops in the order of evaluation, then outputs
  std::vector<GraphEdge> edges;  // in the order of `to`, then of `input`
  std::vector<GraphBlock> blocks;
};

// Reads the graph of a program that was placed by this decision. InternalError where the placement has its rows in
// another order than the program its calls. Uses no recursion.
ProgramGraph read_graph(const PlacedModule& placed, const Decision& decision);

}  // namespace headrace::partition
