// A lower bound of a label problem, and labels that it suggests: sequential tree-reweighted messages (V. Kolmogorov,
// "Convergent tree-reweighted message passing for energy minimization", 2006), in integers.
#pragma once

#include "graph/label_factors.h"

namespace headrace::graph {

struct LabelBound {
  LabelCost lower_bound = 0;
  std::vector<int32_t> values;  // one value per variable; not the best ones, but a good start
};

// Returns the bound of factors of at most two variables (make_factors with 0). Moves costs between the factors of a
// variable for up to `max_sweeps` sweeps, until the bound grows by less than a hundred-thousandth. Each bound on the
// way holds, since the sum of all factors stays. Linear in the tables for each sweep.
LabelBound bound_labels(const LabelFactors& factors, int max_sweeps);

}  // namespace headrace::graph
