// Cuts a program into the stages of a pipeline.
#pragma once

#include <span>
#include <vector>

#include "artifact/pipeline_plan.h"
#include "driver/model.h"
#include "driver/straight_line.h"

namespace headrace::driver {

// A stage's program, and where the value of each of its inputs comes from.
struct CutStage {
  Model model;
  std::vector<artifact::PipelineSource> sources;
};

struct CutProgram {
  std::vector<artifact::PipelinePort> inputs;  // the inputs of the model that something reads
  std::vector<CutStage> stages;
  std::vector<artifact::PipelineOutput> outputs;  // those of the model, in order
};

// Makes a program of each stage; `stage_of_call` has the number of each call's stage, from 0 on without gaps, and every
// tensor leads from a stage to the same or a later one. Inputs and outputs of the pipeline have the model's names;
// tensors between stages have the name of the op that makes them with the number of its call: "nn_conv2d_12". A result
// that no call makes, such as an input that is handed through, comes from the last stage.
CutProgram cut_stages(const Model& model, const StraightLine& line, std::span<const int32_t> stage_of_call);

}  // namespace headrace::driver
