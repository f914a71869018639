// Ports: the ends of connections between stages, by which requests enter, pass through and leave a pipeline.
#pragma once

#include <string>

#include "artifact/pipeline_plan.h"

namespace headrace::executors::pipeline {

using Port = artifact::PipelinePort;
using Source = artifact::PipelineSource;
using Batch = artifact::PipelineBatch;

// Returns the port's type as text: "float32 (1, 3, 224, 224)", or "any value".
std::string type_text(const Port& port);
// Returns whether a value of `from` may enter `to`: both have the same type, or one of them takes any value.
bool fits(const Port& from, const Port& to);

}  // namespace headrace::executors::pipeline
