// A pipeline as plain data: what its stages run, and where the value of each input comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/location.h"
#include "artifact/tensor_spec.h"

namespace headrace::artifact {

inline constexpr int32_t kMostInFlight = 1 << 20;  // requests of a pipeline that have a place at once
inline constexpr int32_t kMostReplicas = 1024;     // per stage; each has a thread
inline constexpr int32_t kMostInBatch = 1 << 16;   // requests of one call of a stage

// An input or output of a stage or of a pipeline.
struct PipelinePort {
  TensorSpec spec;      // its dtype and shape mean nothing when is_any is set
  bool is_any = false;  // carries any value; what reads it says what it takes

  const std::string& name() const { return spec.name; }
};

// Where the value of a stage's input, or of a pipeline's output, comes from.
struct PipelineSource {
  enum class Kind : uint8_t { input, stage, param };
  Kind kind = Kind::input;
  size_t index = 0;  // number of the pipeline's input, the stage, or the parameter
  size_t port = 0;   // a stage's output
};

// A whole artifact within the file, which has the programs of stages.
struct PipelineModel {
  std::string name;     // for messages and listings
  std::string section;  // its bytes
};

// A device or a set of cores. Its stages take turns; stages of different groups run at the same time.
struct PipelineGroup {
  std::string name;
  Location location = {};
  std::vector<int32_t> cpus = {};  // processors of its threads; empty: any
};

// A program of one of the plan's models.
struct PipelineProgram {
  int32_t model = -1;
  std::string program = {};
};

// How a stage takes several requests in one call. Its ports are those of one request: a tensor has 1 as its first
// dimension where the program has its batch.
struct PipelineBatch {
  int32_t max_batch = 1;
  double max_delay_seconds = 0;  // how long the first request of a batch waits for others
  bool retry_alone = false;      // when a call fails, each of its requests is tried once alone
  // A request may have any number of rows; its tensors then have them as their first dimension, and max_batch counts
  // rows.
  bool any_rows = false;
  // Programs for other batches than the stage's own program; the one with the smallest batch that fits runs.
  std::vector<PipelineProgram> others = {};
};

// Where the code of a stage runs.
enum class PipelineIsolation : uint8_t {
  thread,   // in the process of the pipeline
  process,  // in a process of its own for each replica; a function is `module:function`, which Python imports there
};

// Runs a program of a model, or a function that the process provides, on each request.
struct PipelineStage {
  std::string name;
  std::string backend = {};   // name of the backend for messages; may be empty
  int32_t model = -1;         // has `program`; -1: `function` is called
  std::string program = {};   // empty for a function
  std::string function = {};  // an import that is looked up at load; empty for a program
  std::vector<PipelinePort> inputs = {}, outputs = {};
  std::vector<PipelineSource> sources = {};  // one for each input
  int32_t group = 0;
  int32_t replicas = 1;
  int32_t threads = 1;            // per replica of a program
  double time_limit_seconds = 0;  // limit for one run; 0: none
  std::optional<PipelineBatch> batch = {};
  PipelineIsolation isolation = PipelineIsolation::thread;
  bool is_pure = false;  // in a process of its own: a request is run again after a crash
};

struct PipelineOutput {
  std::string name;
  PipelineSource source;  // a stage's output
};

// An input of stages that keeps its value from request to request. All parameters of a group change at once.
struct PipelineParam {
  std::string group;
  PipelinePort port;
  int64_t weight = -1;  // its first value, a weight of the manifest; -1: it has none until it is set
};

struct PipelinePlan {
  std::vector<PipelineModel> models = {};
  std::vector<PipelineGroup> groups = {};
  std::vector<PipelinePort> inputs = {};
  std::vector<PipelineStage> stages = {};
  std::vector<PipelineOutput> outputs = {};
  std::vector<PipelineParam> params = {};
  int32_t max_inflight = 16;  // requests that may have a place at once
};

}  // namespace headrace::artifact
