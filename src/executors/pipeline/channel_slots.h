// The slots of the connections between the stages of a pipeline, with those of batches and replicas (slots.h).
#pragma once

#include <cstddef>
#include <vector>

#include "executors/pipeline/spec.h"

namespace headrace::executors::pipeline {

// Returns the slots that each input needs that reads a stage's output, in the order of the stages in `order`, which is
// that of check_spec, and of their inputs: those of its edge, and for each replica but one of both ends those of one
// call. No input needs more than the requests that may be in the pipeline, and one for each replica of the producer. An
// output has the most that one of its readers needs.
//
// These are the tensors that a pipeline holds for an output in the memory of a device. A channel between two threads of
// the CPU may be a queue and have more.
std::vector<size_t> slots_of_inputs(const PipelineSpec& spec, const std::vector<size_t>& order, size_t max_inflight);

}  // namespace headrace::executors::pipeline
