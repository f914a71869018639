// Graphs in DOT, the language of Graphviz (https://graphviz.org/doc/info/lang.html).
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::tools {

// Returns the graph of a graph_report() as text: a node for each input, op or step and output, with the types of its
// results; a box around each region. The names of a model become quoted labels, never other parts of the text.
std::string to_dot(const Report& graph, const std::string& title);

}  // namespace headrace::tools
