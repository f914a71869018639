// The plan of a pipeline: which program runs where as a stage, and which tensors flow between the stages. Plain
// structs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/location.h"

namespace headrace::artifact {

// A device or a set of cores. Its stages take turns; stages of different groups run at the same time.
struct PipelineGroup {
  std::string name;
  Location location = {};
  std::vector<int32_t> cpus;  // processors of its threads; empty: any
  int32_t threads = 0;        // of each replica; 0: as many as processors
};

// Runs a program of the file, or a function that the process provides, on each request.
struct PipelineStage {
  std::string name;
  std::string program;   // a program of the manifest; empty: `function` is called
  std::string function;  // an import that is looked up at load; empty for a program
  int32_t group = 0;
  int32_t replicas = 1;
  int32_t max_batch = 1;  // requests that one call may take together
};

// One end of a connection: output or input `port` of a stage.
struct PipelinePort {
  int32_t stage = -1;  // -1: the pipeline itself
  int32_t port = 0;
};

struct PipelineEdge {
  PipelinePort from, to;
  int32_t slots = 2;  // tensors that may be under way
};

struct PipelinePlan {
  std::vector<PipelineGroup> groups;
  std::vector<PipelineStage> stages;  // in an order in which data flows forward
  std::vector<PipelineEdge> edges;
  int32_t max_inflight = 0;  // requests; 0: as many as the slots allow
};

}  // namespace headrace::artifact
