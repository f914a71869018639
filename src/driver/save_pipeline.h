// Writes the file of a pipeline.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "artifact/pipeline_plan.h"
#include "tensor/ndarray.h"

namespace headrace::driver {

// A pipeline to be saved.
struct PipelineContent {
  // Its sections need not be filled in, nor the inputs and outputs of stages that run a program, nor the programs of
  // models that have one.
  artifact::PipelinePlan plan;
  std::vector<std::string> models;    // the bytes of each model's artifact
  std::vector<NDArray> first_values;  // one per parameter, null for one that has none; empty: none has
};

struct SavedPipeline {
  artifact::PipelinePlan plan;  // as it is in the file: models of equal bytes are one
  int64_t nbytes = 0;
};

// Returns the ports of a stage for the inputs or the outputs of its program.
std::vector<artifact::PipelinePort> stage_ports(const std::vector<artifact::TensorSpec>& specs);

// Refuses a name that is not one of a shared object, such as that of another model.
void check_pipeline_name(const std::string& path);

// Writes the file `path`, which appears complete or not at all. load::open_pipeline opens it, with the runtime alone;
// it needs no other file and can be moved. Throws UserError for a plan that makes no pipeline (check_spec), a model
// that is not an artifact, has its weights in another file or lacks the stage's program, programs that make no batch,
// values that do not fit, and a file that cannot be written.
SavedPipeline save_pipeline(PipelineContent content, const std::string& path);

}  // namespace headrace::driver
