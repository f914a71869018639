// Moves: labels that are improved step by step, for problems that elimination cannot solve.
//
// A local move gives one node its best label while all others keep theirs. An expansion move gives one label to any set
// of nodes at once, and finds the best set by a minimum cut (Y. Boykov, O. Veksler, R. Zabih, "Fast approximate energy
// minimization via graph cuts", 2001). Where costs are not those that a cut can express, the cut sees higher ones; a
// move is made only if the true cost falls.
#pragma once

#include "graph/labels.h"

namespace headrace::graph {

// Improves the labels of a normalized problem until no move does, or for a number of rounds. The cost never rises.
void improve_labels(const LabelProblem& problem, std::vector<int32_t>& labels);

// Returns the best labels of a normalized problem with two labels whose pair costs are submodular:
// [0,0] + [1,1] <= [0,1] + [1,0]. Nothing for any other problem.
std::optional<std::vector<int32_t>> cut_labels(const LabelProblem& problem);

}  // namespace headrace::graph
