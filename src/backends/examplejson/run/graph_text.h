// Reads the text of graphs that the backend examplejson runs.
//
//   subgraph_0
//     input 0 10 10
//     input 1 10 10
//     add 2 inputs: 0 1 shape: 10 10
//
// A line of one name begins a subgraph. `input ID DIMS` is its next input, `OP ID inputs: IDS shape: DIMS` computes a
// node from earlier ones: add, sub or mul of two float32 tensors of one shape, element by element. The last node is the
// output. Ids are numbers, each once in a subgraph. Blanks around words and empty lines are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::backends::examplejson {

enum class GraphOp : uint8_t { input, add, sub, mul };

struct GraphNode {
  GraphOp op = GraphOp::input;
  size_t a = 0, b = 0;  // the positions of the operands; not of an input
};

struct Subgraph {
  std::string name;
  std::vector<GraphNode> nodes;  // inputs are among them, in order
  size_t num_inputs = 0;
  std::vector<int64_t> shape;  // all its tensors have it
};

// Returns whether a line of this word begins a subgraph: letters, digits and _, no digit first, and not "input".
bool is_subgraph_name(std::string_view word);

// UserError that names the line of a word that is not an op, a number that is none or is negative or too large, an id
// that is not defined or defined twice, a shape that differs from the operands', a node outside of a subgraph, two
// subgraphs of one name and a subgraph that computes nothing; and for a text without a subgraph.
std::vector<Subgraph> read_graph_text(std::string_view text);

}  // namespace headrace::backends::examplejson
