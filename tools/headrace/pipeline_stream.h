// Functions that the actions of `pipeline` share that run requests.
#pragma once

#include <optional>

#include "executors/pipeline/pipeline.h"
#include "tools/headrace/fallback_option.h"
#include "tools/headrace/input_options.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

struct StreamOptions {
  std::string path;
  InputOptions inputs;
  int max_inflight = 0;  // 0: what the file says
  bool unpinned = false;
  bool warm_up = false;
  FallbackOption fallback;
  std::string trace;  // the file that gets the trace; empty: none is recorded

  void add_to(CLI::App& verb);
};

// Throws UserError for the path of a model, which `pipeline split` makes a pipeline of.
void refuse_model_for_stream(const std::string& path);
// Starts the pipeline of the file.
std::unique_ptr<executors::pipeline::Pipeline> open_stream(const StreamOptions& options);
// Returns the given inputs in the order of the pipeline's, and random ones for the others. Throws UserError for an
// input that the pipeline does not have, for one of another type, and for one that takes any value and has no file that
// says its shape.
std::vector<Value> stream_inputs(const executors::pipeline::Pipeline& pipeline, const StreamOptions& options);

struct WrittenTrace {
  std::string file;
  size_t events = 0;
  uint64_t overwritten = 0;
};

// Begins the trace, if one is asked for. UserError for a file that cannot be written.
void start_trace(executors::pipeline::Pipeline& pipeline, const StreamOptions& options);
// Ends and writes it; nothing if none is asked for.
std::optional<WrittenTrace> write_trace(executors::pipeline::Pipeline& pipeline, const StreamOptions& options);
// Return an object or null, and a line or nothing.
Value trace_report(const std::optional<WrittenTrace>& trace);
std::string trace_text(const std::optional<WrittenTrace>& trace);

// Return a list, and a line for each region that ran natively.
Value fallbacks_report(const executors::pipeline::Pipeline& pipeline);
std::string fallbacks_text(const executors::pipeline::Pipeline& pipeline);

Report metrics_report(const executors::pipeline::PipelineMetrics& metrics);
// Returns a table of the stages, and a line with throughput in the seconds that the requests took, latency and
// bottleneck.
std::string metrics_table(const executors::pipeline::PipelineMetrics& metrics, double seconds);

}  // namespace headrace::tools
