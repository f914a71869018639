// The modelled time of calls, for placement by cost. entry.cc answers with it the functions `cost`, `saved` and
// `border` of headrace/backend_abi.h.
#pragma once

#include <headrace/backend_abi.h>

#include "backends/onednn/network.h"

namespace headrace_onednn {

// Returns the seconds of a network whose ops are a primitive each. Operands of concats are taken to be computed in the
// network, and by nothing that keeps them out of the concat's memory.
double network_seconds(const Network& network, const hr_machine& machine, int threads);

// Returns the seconds that a call, or a match of a pattern, takes within a region; -1 where the query has no machine,
// or a call that the backend does not take.
double call_seconds(const hr_graph_api& api, const hr_cost_query& query);

// Returns the seconds that the last call of a graph costs less because it is done on the result of a convolution or a
// dense layer (fuse.h); 0 where it is a primitive of its own.
double fused_seconds(const hr_graph_api& api, const hr_cost_query& query);

// Returns the seconds of a tensor's conversion between row-major order and the layout of convolutions; 0 for a tensor
// of fewer than four axes, whose layout stays.
double border_seconds(const hr_border_query& query);

}  // namespace headrace_onednn
