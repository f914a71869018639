// headrace pipeline run: a stream of equal requests through a pipeline.
#include <chrono>
#include <deque>

#include "executors/pipeline/failure.h"
#include "tools/headrace/output.h"
#include "tools/headrace/pipeline_stream.h"
#include "tools/headrace/pipeline_verbs.h"
#include "tools/headrace/run_outputs.h"
#include "tools/headrace/stream_files.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

using executors::pipeline::Pipeline;

struct PipelineRunState {
  StreamOptions stream;
  std::string folder;
  OutputValueOptions values;
  int requests = 1;
};

// The outputs that are tensors, with the pipeline's names and the files that they go to.
struct TensorOutputs {
  std::vector<artifact::TensorSpec> specs;
  std::vector<NDArray> tensors;
  std::vector<std::string> files;
};

// The outputs as the pipeline declares them.
struct DeclaredOutputs {
  std::vector<artifact::TensorSpec> specs;  // an output that may be any value has its name alone
  bool are_tensors = true;                  // no output may be any value
};

DeclaredOutputs declared_outputs(const Pipeline& pipeline) {
  DeclaredOutputs declared;
  for (const executors::pipeline::OutputSpec& output : pipeline.spec().outputs) {
    const executors::pipeline::Port& port = port_of(pipeline.spec(), output.source);
    declared.specs.push_back({.name = output.name, .dtype = port.spec.dtype, .shape = port.spec.shape});
    declared.are_tensors = declared.are_tensors && !port.is_any;
  }
  return declared;
}

TensorOutputs tensors_of(const std::vector<Value>& results, const std::vector<artifact::TensorSpec>& declared,
                         const std::vector<std::string>& files) {
  TensorOutputs outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!matches_item<NDArray>(results[i].raw())) continue;
    outputs.tensors.push_back(results[i].as<NDArray>());
    const NDArray& tensor = outputs.tensors.back();
    outputs.specs.push_back(declared[i]);
    outputs.specs.back().dtype = tensor.dtype();
    outputs.specs.back().shape.assign(tensor.shape().begin(), tensor.shape().end());
    outputs.files.push_back(files[i]);
  }
  return outputs;
}

// Submits the requests, and returns the results of the last one.
std::vector<Value> run_all(Pipeline& pipeline, const std::vector<Value>& inputs, int requests) {
  std::deque<executors::pipeline::Ticket> open;
  std::vector<Value> results;
  for (int i = 0; i < requests; ++i) {
    if (open.size() >= pipeline.options().max_inflight) {
      open.front().results();
      open.pop_front();
    }
    open.push_back(pipeline.submit(inputs));
  }
  for (; !open.empty(); open.pop_front()) results = open.front().results();
  return results;
}

int run_pipeline(const PipelineRunState& state, const Common& common) {
  const std::unique_ptr<Pipeline> pipeline = open_stream(state.stream);
  const DeclaredOutputs declared = declared_outputs(*pipeline);
  const OutputValues values = state.values.read();
  if (declared.are_tensors) check_labels(values.labels, declared.specs);
  FileUses uses = stream_files(state.stream, common);
  uses.add_inputs("the list of labels", {state.values.labels_file()});
  const std::vector<std::string> files = output_files(state.folder, declared.specs, uses);
  uses.check();
  const std::vector<Value> inputs = stream_inputs(*pipeline, state.stream);
  start_trace(*pipeline, state.stream);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Value> results = run_all(*pipeline, inputs, state.requests);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::optional<WrittenTrace> trace = write_trace(*pipeline, state.stream);
  const TensorOutputs outputs = tensors_of(results, declared.specs, files);
  check_labels(values.labels, outputs.specs);
  if (!state.folder.empty()) write_tensors(outputs.files, outputs.tensors);
  const DescribedOutputs described = describe_outputs(outputs.specs, outputs.tensors, outputs.files, values);
  const executors::pipeline::PipelineMetrics metrics = pipeline->metrics();
  if (common.json) {
    std::cout << to_json({{"requests", Value(int64_t{state.requests})},
                          {"seconds", Value(seconds.count())},
                          {"outputs", Value(described.report)},
                          {"metrics", Value(metrics_report(metrics))},
                          {"fallbacks", fallbacks_report(*pipeline)},
                          {"trace", trace_report(trace)}});
  } else {
    if (results.size() > outputs.tensors.size())
      print_out("{} of {} outputs are not tensors\n", results.size() - outputs.tensors.size(), results.size());
    std::cout << to_table(described.rows);
    for (const std::string& line : described.values) print_out("{}\n", shown(line));
    std::cout << "\n" << metrics_table(metrics, seconds.count()) << fallbacks_text(*pipeline) << trace_text(trace);
  }
  return HR_OK;
}

}  // namespace

Verb add_pipeline_run(CLI::App& pipeline, const Common& common) {
  auto state = std::make_shared<PipelineRunState>();
  CLI::App* verb = pipeline.add_subcommand("run", "Run requests through a pipeline");
  state->stream.add_to(*verb);
  takes(verb->add_option("--requests", state->requests, "Number of requests, all with the same inputs"),
        {1, 100'000'000, 100})
      ->capture_default_str();
  takes_path(verb->add_option("--output-dir", state->folder,
                              "Folder that gets each output of the last request as NAME.npy; made when missing"),
             "FOLDER");
  state->values.add_to(*verb);
  verb->footer(
      "Example: headrace pipeline run pipe.so --input x=image.npy --requests 100\n"
      "         headrace pipeline run pipe.so --input x=photo.jpg --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 \\\n"
      "           --top 5 --labels names.txt");
  return [state, &common] { return run_pipeline(*state, common); };
}

}  // namespace headrace::tools
