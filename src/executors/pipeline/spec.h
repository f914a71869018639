// PipelineSpec: a graph of stages as plain data, and the rules that it keeps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executors/pipeline/port.h"
#include "executors/pipeline/stage_code.h"

namespace headrace::executors::pipeline {

struct StageSpec {
  std::string name;
  std::string backend = {};  // name of the backend for messages; may be empty
  // One code for each request that the stage may work on at a time. All have the same ports.
  std::vector<std::shared_ptr<StageCode>> replicas = {};
  std::vector<Source> inputs = {};  // one for each input port
  size_t group = 0;                 // a stage with several replicas is alone in its group
  double time_limit_seconds = 0;    // limit for one run; 0: none. A process enforces its limit itself
  std::optional<Batch> batch = {};  // several requests in one call; its programs are in the replicas' codes
};

struct OutputSpec {
  std::string name;
  Source source;  // a stage's output
};

struct ParamSpec {
  std::string group;  // all parameters of a group change at once
  Port port;
};

// A thread that runs the stages of the group, one at a time; with replicas, a thread for each of them.
struct GroupSpec {
  std::string name = {};
  std::vector<int32_t> cpus = {};  // the processors that it may run on; none: any
};

struct PipelineSpec {
  std::vector<Port> inputs;
  std::vector<StageSpec> stages = {};
  std::vector<OutputSpec> outputs = {};
  std::vector<ParamSpec> params = {};
  std::vector<GroupSpec> groups = {};
};

// Returns the order in which a request passes the stages: each after those that it reads, else in the order of the
// list. Throws UserError, with the names of the ports, for a pipeline without stages or outputs, for names that are
// empty or taken, a source that does not exist, types that differ, a cycle, an input that nothing reads, a stage whose
// replicas are too many, share a group with other stages or have other ports, a batch that is larger than the code
// takes, or none for code that takes batches, a request's value for what all requests of a batch share, and a group
// without stages or with processors below 0.
std::vector<size_t> check_spec(const PipelineSpec& spec);

// Returns the port that a source stands for.
const Port& port_of(const PipelineSpec& spec, const Source& source);
// Returns "output 'y' of stage 'detect'", "input 'x' of the pipeline".
std::string source_text(const PipelineSpec& spec, const Source& source);

}  // namespace headrace::executors::pipeline
