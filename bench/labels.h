// Times the choice of labels at least cost (graph/labels.h), which placement calls.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct LabelBenchOptions {
  int rounds = 3;
  int32_t nodes = 100'000;  // about so many: whole blocks
  int32_t labels = 8;
};

// For stacked residual blocks and for stacked attention layers, with random costs and prices that are paid once for all
// consumers: the best seconds of the exact method and of moves, the cost found, and its gap as a share of the cost.
tools::Report measure_labels(const LabelBenchOptions& options);

}  // namespace headrace::bench
