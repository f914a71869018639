#include "tools/headrace/pipeline_stream.h"

#include <algorithm>
#include <filesystem>

#include "devices/place_stages.h"
#include "driver/model.h"
#include "driver/output_file.h"
#include "executors/pipeline/isolation/program_stage.h"
#include "load/pipeline_file.h"
#include "object/array.h"
#include "tools/headrace/interruption.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"
#include "tools/html/page.h"

namespace headrace::tools {

namespace {

using executors::pipeline::Pipeline;
using executors::pipeline::PipelineMetrics;
using executors::pipeline::Port;
using executors::pipeline::StageMetrics;

// Returns the type of an input that takes any value: the type of the tensor in its file, which has to say its shape.
artifact::TensorSpec type_of_file(const std::string& name, const std::vector<std::string>& files) {
  std::vector<std::string> own;
  std::copy_if(files.begin(), files.end(), std::back_inserter(own), [&](const std::string& text) {
    return text.starts_with(name + "=") || text.find('=') == std::string::npos;
  });
  const std::map<std::string, artifact::TensorSpec> specs = specs_in_files(own);
  const auto found = specs.find(name);
  if (found == specs.end()) {
    static_cast<void>(read_named(own));  // refuses files that do not say a shape
    throw_user_error("the input '{}' takes any value, so it is given: --input {}=FILE", name, name);
  }
  return {.name = name, .dtype = found->second.dtype, .shape = found->second.shape};
}

double seconds_of(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// Shares of the time since the start, of all replicas of a stage.
double share_of(uint64_t nanoseconds, const StageMetrics& stage, const PipelineMetrics& metrics) {
  const double all =
      static_cast<double>(std::max<uint64_t>(metrics.elapsed_ns, 1)) * static_cast<double>(stage.replicas);
  return static_cast<double>(nanoseconds) / all;
}

// Returns the seconds that a request waited for its batch, on average.
double wait_of(const StageMetrics& stage) {
  return stage.batches == 0 ? 0 : seconds_of(stage.waited_ns) / static_cast<double>(std::max<uint64_t>(stage.items, 1));
}

// Returns a line for each stage that takes batches, and for each whose processes were started again.
std::string batches_text(const PipelineMetrics& metrics) {
  std::string text;
  for (const StageMetrics& stage : metrics.stages) {
    if (stage.batches == 0) continue;
    text += fmt::format("{}: {} batches, {:.1f} requests each, which waited {} (mean)\n", stage.name, stage.batches,
                        static_cast<double>(stage.items) / static_cast<double>(stage.batches),
                        show_seconds(wait_of(stage)));
  }
  for (const StageMetrics& stage : metrics.stages) {
    if (stage.restarts > 0) text += fmt::format("{}: {} restarts\n", stage.name, stage.restarts);
  }
  return text;
}

}  // namespace

void StreamOptions::add_to(CLI::App& verb) {
  verb.add_option("file", path, "A pipeline, as pipeline split or save in Python writes it")
      ->required()
      ->type_name("FILE");
  inputs.add_random_to(verb);
  takes(verb.add_option("--max-inflight", max_inflight,
                        "Requests that may be in the pipeline at once (0: as the file says)"),
        {0, artifact::kMostInFlight, 16});
  verb.add_flag("--unpinned", unpinned, "Let threads run on any processors, not on those that the file names");
  verb.add_flag("--warm-up", warm_up, "Call each program once on zeros before the first request");
  fallback.add_to(verb);
  takes_path(
      verb.add_option("--trace", trace,
                      "A file for the times when each stage worked and waited: a page that draws them where the name "
                      "ends in .html, else JSON for chrome://tracing or Perfetto"),
      "FILE");
}

void refuse_model_for_stream(const std::string& path) {
  if (driver::find_model_format(path))
    throw_user_error("'{}' is a model, which headrace pipeline split makes a pipeline of", path);
}

std::unique_ptr<Pipeline> open_stream(const StreamOptions& options) {
  refuse_model_for_stream(options.path);
  if (options.inputs.has_images()) watch_for_interruptions();  // before the pipeline starts threads
  load::PipelineFileOptions chosen{.pipeline = {.warms_up = options.warm_up},
                                   .is_pinned = !options.unpinned,
                                   .fallback = options.fallback.read(),
                                   .make_program_stage = &executors::pipeline::isolation::make_program_stage,
                                   .place_stages = &devices::place_stages};
  if (options.max_inflight > 0) chosen.max_inflight = static_cast<size_t>(options.max_inflight);
  return load::open_pipeline(options.path, chosen);
}

std::vector<Value> stream_inputs(const Pipeline& pipeline, const StreamOptions& options) {
  std::vector<artifact::TensorSpec> specs;
  for (const Port& port : pipeline.spec().inputs)
    specs.push_back(port.is_any ? type_of_file(port.name(), options.inputs.files()) : port.spec);
  std::vector<Value> values;
  for (const NDArray& tensor : options.inputs.read(specs)) values.emplace_back(tensor);
  return values;
}

void start_trace(Pipeline& pipeline, const StreamOptions& options) {
  if (options.trace.empty()) return;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(options.trace, ignored);
  // A file that cannot be written is told before the stream runs. Pipes and devices have no temporary file.
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status) ||
      std::filesystem::is_directory(status))
    static_cast<void>(driver::OutputFile(options.trace));
  pipeline.start_trace();
}

std::optional<WrittenTrace> write_trace(Pipeline& pipeline, const StreamOptions& options) {
  if (options.trace.empty()) return {};
  const executors::pipeline::Trace trace = pipeline.stop_trace();
  std::string text = executors::pipeline::chrome_trace(trace);
  if (options.trace.ends_with(".html")) text = html::make_page(html::timeline_page(), shown(options.path), text);
  driver::write_text(options.trace, text);
  return WrittenTrace{.file = options.trace, .events = trace.events.size(), .overwritten = trace.overwritten};
}

Value fallbacks_report(const Pipeline& pipeline) {
  Array<Value> list;
  for (const load::StageFallback& fallback : load::fallbacks_of(pipeline)) {
    Report one{{"stage", Value(fallback.stage)}};
    for (const auto& [name, value] : report_of(fallback.event)) one.set(name, value);
    list.push_back(Value(one));
  }
  return Value(list);
}

std::string fallbacks_text(const Pipeline& pipeline) {
  std::string text;
  for (const load::StageFallback& fallback : load::fallbacks_of(pipeline))
    text += fmt::format("stage {}: {}", shown(fallback.stage), line_of(fallback.event));
  return text;
}

Value trace_report(const std::optional<WrittenTrace>& trace) {
  if (!trace) return {};
  return Value(Report{{"file", Value(trace->file)},
                      {"events", Value(static_cast<int64_t>(trace->events))},
                      {"overwritten", Value(static_cast<int64_t>(trace->overwritten))}});
}

std::string trace_text(const std::optional<WrittenTrace>& trace) {
  if (!trace) return "";
  return fmt::format(
      "{} times of stages in {}{}\n", trace->events, shown(trace->file),
      trace->overwritten == 0 ? "" : fmt::format("; {} older ones were overwritten", trace->overwritten));
}

Report metrics_report(const PipelineMetrics& metrics) {
  Array<Value> stages;
  for (const StageMetrics& stage : metrics.stages)
    stages.push_back(Value(Report{{"name", Value(stage.name)},
                                  {"items", Value(static_cast<int64_t>(stage.items))},
                                  {"errors", Value(static_cast<int64_t>(stage.errors))},
                                  {"busy", Value(share_of(stage.busy_ns, stage, metrics))},
                                  {"starved", Value(share_of(stage.starved_ns, stage, metrics))},
                                  {"blocked", Value(share_of(stage.blocked_ns, stage, metrics))},
                                  {"median_seconds", Value(seconds_of(stage.run.median))},
                                  {"batches", Value(static_cast<int64_t>(stage.batches))},
                                  {"wait_seconds", Value(wait_of(stage))},
                                  {"pids", Value(Shape(stage.pids.begin(), stage.pids.end()))},
                                  {"restarts", Value(static_cast<int64_t>(stage.restarts))}}));
  return {{"succeeded", Value(static_cast<int64_t>(metrics.succeeded))},
          {"seconds", Value(seconds_of(metrics.elapsed_ns))},
          {"latency_median_seconds", Value(seconds_of(metrics.latency.median))},
          {"latency_p99_seconds", Value(seconds_of(metrics.latency.p99))},
          {"bottleneck", Value(metrics.bottleneck)},
          {"stages", Value(stages)}};
}

std::string metrics_table(const PipelineMetrics& metrics, double seconds) {
  std::vector<std::vector<std::string>> rows{{"stage", "items", "errors", "busy", "starved", "blocked", "median"}};
  const auto percent = [&](uint64_t nanoseconds, const StageMetrics& stage) {
    return fmt::format("{:.0f} %", 100 * share_of(nanoseconds, stage, metrics));
  };
  for (const StageMetrics& stage : metrics.stages)
    rows.push_back({stage.name, std::to_string(stage.items), std::to_string(stage.errors),
                    percent(stage.busy_ns, stage), percent(stage.starved_ns, stage), percent(stage.blocked_ns, stage),
                    show_seconds(seconds_of(stage.run.median))});
  return fmt::format("{}{}{} requests, {:.1f} a second; latency {} (median), {} (p99); bottleneck: {}\n",
                     to_table(rows), batches_text(metrics), metrics.succeeded,
                     static_cast<double>(metrics.succeeded) / seconds, show_seconds(seconds_of(metrics.latency.median)),
                     show_seconds(seconds_of(metrics.latency.p99)), metrics.bottleneck);
}

}  // namespace headrace::tools
