// Ports: the ends of connections between stages, by which requests enter, pass through and leave a pipeline.
#pragma once

#include <string>

#include "artifact/pipeline_plan.h"

namespace headrace::executors::pipeline {

using Port = artifact::PipelinePort;
using Source = artifact::PipelineSource;
using Batch = artifact::PipelineBatch;

// Returns the port's type as text: "float32 (1, 3, 224, 224)", or "any value"; and its memory, if that is not the
// host's: "float32 (8) on cuda:0".
std::string type_text(const Port& port);
// Returns whether a value of `from` may enter `to`: both have the same memory, and the same type unless one of them
// takes any value. A stage reads its inputs in place, so a value passes to other memory by a stage that copies it.
bool fits(const Port& from, const Port& to);

}  // namespace headrace::executors::pipeline
