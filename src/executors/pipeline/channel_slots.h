// The slots that the outputs of a pipeline's stages need, by the edges that lead from them (slots.h).
#pragma once

#include <cstddef>
#include <vector>

#include "executors/pipeline/spec.h"

namespace headrace::executors::pipeline {

// Returns the slots of each output, by the stage's number in the spec and the output's: the most that one of its edges
// needs, and for each replica but one of both ends those of one call. An output that no stage reads has none. `order`
// is that of check_spec. No output has more than the requests that may be in the pipeline, and one for each replica.
//
// These are the tensors that a pipeline holds for an output in the memory of a device. A channel between two threads of
// the CPU may be a queue and have more.
std::vector<std::vector<size_t>> slots_of_outputs(const PipelineSpec& spec, const std::vector<size_t>& order,
                                                  size_t max_inflight);

}  // namespace headrace::executors::pipeline
