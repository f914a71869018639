// Opens the pipeline of a file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executors/pipeline/isolation/process_options.h"
#include "executors/pipeline/pipeline.h"
#include "load/artifact.h"

namespace headrace::load {

// Puts the stages of a plan on the devices of their groups; throws UserError for a device that it does not have.
using PlaceStages = std::function<void(const artifact::PipelinePlan& plan, executors::pipeline::PipelineSpec& spec)>;

// Returns the code of a stage whose function the process provides; null where it has no such function.
using FindStage = std::function<std::shared_ptr<executors::pipeline::StageCode>(const artifact::PipelineStage& stage)>;

struct PipelineFileOptions {
  executors::pipeline::PipelineOptions pipeline = {};
  std::optional<size_t> max_inflight = {};  // nothing: what the file says
  // Whether threads stay on the processors that the file names; otherwise they may run anywhere.
  bool is_pinned = true;
  // Where the backend of a region of a stage's program is missing or fails.
  executors::Fallback fallback = executors::Fallback::native;
  // Called with the plan of the file before anything is made of it; may throw. May be empty.
  std::function<void(const artifact::PipelinePlan& plan)> check_plan = {};
  // Asked first for the functions of stages; then the process's global functions are.
  FindStage find_stage = {};
  // Makes stages that run in processes of their own; without it they are a MissingError. The runtime alone does not
  // have make_program_stage of executors/pipeline/isolation: programs link it from the library headrace_isolation.
  executors::pipeline::isolation::MakeProgramStage make_program_stage = {};
  // Called with the codes of all stages; without it, a group that is not on the CPU is refused. The runtime alone does
  // not have place_stages of devices/place_stages.h.
  PlaceStages place_stages = {};
};

// Starts the pipeline of a file, whose parameters get the first values that the file has. Models are mapped, as
// open_artifact does it, each once. Throws UserError for a file without a pipeline, a model that has other inputs and
// outputs than the plan says, a group that is not on the CPU, and as Pipeline's constructor; MissingError for a
// function that nothing here provides. Refusals to open the file, or a model in it, are thrown as errors; those of
// models name the stage.
std::unique_ptr<executors::pipeline::Pipeline> open_pipeline(const std::string& path,
                                                             const PipelineFileOptions& options = {});

// A region of a stage's program that runs natively, because its backend is missing or failed.
struct StageFallback {
  std::string stage;
  executors::FallbackEvent event;
};
// Returns those of all stages of a pipeline.
std::vector<StageFallback> fallbacks_of(const executors::pipeline::Pipeline& pipeline);

}  // namespace headrace::load
