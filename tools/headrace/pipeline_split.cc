// headrace pipeline split: a model as a pipeline of stages.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "driver/split_model.h"
#include "base/error.h"
#include "partition/place.h"
#include "runtime/processors.h"
#include "runtime/thread_pool.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/pipeline_verbs.h"

namespace headrace::tools {

namespace {

struct SplitState {
  ModelOptions model;
  std::string output, cpus, on, devices, memory, isolation = "thread";
  driver::SplitModelOptions split;
  bool estimate = false, simulate = false;
};

// Returns the parts of a text, which separators outside of brackets end.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : text) {
    depth += letter == '(' ? 1 : letter == ')' ? -1 : 0;
    if (letter == separator && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

// Reads "0,1": the processors of one part. `place` names the part in errors.
std::vector<int32_t> read_part_of_cpus(const std::string& part, const std::string& place) {
  std::vector<int32_t> cpus;
  for (const std::string& text : parts_of(part, ',')) {
    int32_t cpu = -1;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, cpu);
    if (error != std::errc() || stop != end || cpu < 0)
      throw UsageError(fmt::format("{} gives no processors; write those of each stage, as in 0,1/2,3", place));
    cpus.push_back(cpu);
  }
  try {
    runtime::check_named_once(cpus, place);
  } catch (const UserError& error) {
    throw UsageError(error.message(), error.where());
  }
  runtime::check_cpus(cpus, place);
  return cpus;
}

// Reads "0,1/2,3": the processors of two stages.
std::vector<std::vector<int32_t>> read_cpus(const std::string& text) {
  std::vector<std::vector<int32_t>> stages;
  if (text.empty()) return stages;
  for (const std::string& part : parts_of(text, '/'))
    stages.push_back(read_part_of_cpus(part, fmt::format("--cpus: part {} of '{}'", stages.size() + 1, text)));
  return stages;
}

// Reads "onednn,ccompiler/native": the backends of two stages; native has none.
std::vector<std::vector<std::string>> read_backends(const std::string& text) {
  std::vector<std::vector<std::string>> stages;
  if (text.empty()) return stages;
  for (const std::string& stage : parts_of(text, '/')) {
    std::vector<std::string>& names = stages.emplace_back();
    for (std::string& name : parts_of(stage, ',')) {
      if (name.empty())
        throw UsageError(
            fmt::format("--on: '{}' lacks a name; write the backends of each stage, as in onednn/native", text));
      if (name != partition::kNative) names.push_back(std::move(name));
    }
  }
  return stages;
}

int64_t read_bytes(const std::string& text, const std::string& all) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  constexpr std::string_view kUnits = "KMGT";
  const size_t unit = stop == end ? 0 : kUnits.find(*stop) + 1;  // npos + 1 is 0
  const bool is_whole = stop == end || (unit > 0 && stop + 1 == end);
  const int shift = 10 * static_cast<int>(unit);
  if (error != std::errc() || !is_whole || count < 1 || count > (INT64_MAX >> shift))
    throw UsageError(
        fmt::format("--memory: '{}' gives no bytes; write those of a stage, or of each, as in 512M/2G", all));
  return count << shift;
}

// Reads "512M/2G": the bytes of two stages.
std::vector<int64_t> read_memory(const std::string& text) {
  std::vector<int64_t> stages;
  if (text.empty()) return stages;
  for (const std::string& stage : parts_of(text, '/')) stages.push_back(read_bytes(stage, text));
  return stages;
}

// Reads "cpu/sim(speed=0.5)": the devices of two stages. A simulated one without a number has that of its place.
std::vector<std::optional<devices::SimulatedDevice>> read_devices(const std::string& text) {
  std::vector<std::optional<devices::SimulatedDevice>> stages;
  if (text.empty()) return stages;
  for (std::string& stage : parts_of(text, '/')) {
    CLI::detail::trim(stage);
    stages.emplace_back();
    if (stage == "cpu") continue;
    if (!stage.starts_with("sim"))
      throw UsageError(
          fmt::format("--devices: '{}' is not a device; a device is cpu or sim(...), as in sim(speed=0.5)", stage));
    try {
      stages.back() = devices::parse_simulated_device(stage, static_cast<int32_t>(stages.size() - 1));
    } catch (const UserError& error) {
      throw UsageError(fmt::format("--devices: {}", error.message()));
    }
  }
  return stages;
}

// Throws UsageError for an option that has not one part for each stage, such as "cpu/sim" for three stages.
void check_count(std::string_view option, size_t given, int32_t stages) {
  if (given != 0 && given != static_cast<size_t>(stages))
    throw UsageError(fmt::format("{}: has parts for {} stages, and --stages is {}", option, given, stages));
}

// Throws UsageError where two places have one simulated device.
void check_devices(const std::vector<std::optional<devices::SimulatedDevice>>& places) {
  std::set<int32_t> numbers;
  for (const std::optional<devices::SimulatedDevice>& device : places) {
    if (device && !numbers.insert(device->number).second)
      throw UsageError(
          fmt::format("--devices: two stages are on {}; give each device a number of its own", name_of(*device)));
  }
}

void read_places(SplitState& state) {
  driver::SplitModelOptions& split = state.split;
  split.cpus = read_cpus(state.cpus);
  split.backends = read_backends(state.on);
  split.devices = read_devices(state.devices);
  split.memory_bytes = read_memory(state.memory);
  check_count("--cpus", split.cpus.size(), split.stages);
  check_count("--on", split.backends.size(), split.stages);
  check_count("--devices", split.devices.size(), split.stages);
  if (split.memory_bytes.size() != 1) check_count("--memory", split.memory_bytes.size(), split.stages);
  check_devices(split.devices);
}

int split(SplitState state, const Common& common) {
  if (state.output == "-") throw UsageError("--output: a pipeline's file is not text; name a file, such as pipe.so");
  read_places(state);
  using artifact::PipelineIsolation;
  state.split.isolation = state.isolation == "process" ? PipelineIsolation::process : PipelineIsolation::thread;
  if (state.estimate) state.split.replans = -1;
  const driver::CompileOptions options = state.model.compile_options(common);
  if (!common.quiet && isatty(STDERR_FILENO) != 0)
    state.split.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  driver::CompileOptions loading = options;
  if (!state.split.backends.empty()) {  // --on names the backends between which costs choose
    loading.placement = driver::Placement::order;
    loading.costs.clear();
  }
  const driver::Model model = driver::load_model(state.model.path, state.model.load_options(loading));
  FileUses uses = state.model.files(common);
  uses.add_inputs("the model", model.files);
  uses.add_output("--output", state.output);
  uses.check();
  const driver::SplitFile file = driver::split_to_file(model, state.output, options, state.split);
  const driver::SplitModel& split = file.split;
  if (common.json) {
    Report report{{"output", Value(state.output)}};
    for (const auto& [key, value] : driver::report_of(file)) report.set(key, value);
    std::cout << to_json(report);
    return HR_OK;
  }
  print_out("{}: {}, {} tried, times {}\n\n{}", shown(state.output), show_bytes(file.nbytes),
            split.num_plans == 1 ? "one plan" : fmt::format("{} plans", split.num_plans),
            split.seconds.empty() ? "estimated by the sizes of tensors" : "measured",
            plan::format_plan(split.problem, split.plan));
  if (state.simulate) {
    print_out("\n{}", plan::format_simulation(file.simulated, file.simulation));
  } else {
    print_out("predicted    {:.1f} requests a second\n", file.simulation.requests_per_second);
  }
  return HR_OK;
}

// The options that say where stages run.
void add_places_to(CLI::App& verb, SplitState& state) {
  verb.add_option("--cpus", state.cpus, "The processors of each stage, as in 0,1/2,3; otherwise any")
      ->type_name("LIST/LIST...");
  verb.add_option(
          "--on", state.on,
          "The backends of each place for a stage, by priority, as in onednn/native; the split chooses which place "
          "comes first; otherwise those of --backends")
      ->type_name("LIST/LIST...");
  verb.add_option("--devices", state.devices,
                  "The device of each stage: cpu, or one that is simulated, as in 'cpu/sim(speed=0.5, memory=64MiB, "
                  "link=2GB/s, latency=20us)'")
      ->type_name("DEVICE/DEVICE...");
  verb.add_option("--memory", state.memory,
                  "Memory for the constants and tensors of a stage, as in 512M, or of each, as in 512M/2G")
      ->type_name("SIZE/SIZE...");
  takes(verb.add_option(
                "--replicas", state.split.replicas,
                "Largest number of copies of a stage, which take requests in turns; each counts as one of --stages")
            ->capture_default_str(),
        {1, 64, 2});
  takes_word(verb.add_option("--isolation", state.isolation,
                             "thread, or process: each stage in a process of its own, which may crash and starts again")
                 ->capture_default_str(),
             "isolation", {"thread", "process"});
}

}  // namespace

Verb add_pipeline_split(CLI::App& pipeline, const Common& common) {
  auto state = std::make_shared<SplitState>();
  CLI::App* verb = pipeline.add_subcommand("split", "Split a model into stages that run at the same time");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  for (const char* option : {"--plan", "--place"}) verb->get_option(option)->group("");  // they are refused
  takes_path(verb->add_option("-o,--output", state->output, "The file of the pipeline, such as pipe.so")->required(),
             "FILE");
  takes(verb->add_option("--stages", state->split.stages, "Largest number of stages")->capture_default_str(),
        {1, 64, 2});
  takes(verb->add_option("--threads", state->split.threads, "Threads of each stage")->capture_default_str(),
        {1, runtime::kMaxWorkers, 2});
  add_places_to(*verb, *state);
  takes(verb->add_option("--replans", state->split.replans,
                         "How often the model is split again by the measured times of its stages")
            ->capture_default_str(),
        {0, 20, 3});
  verb->add_flag("--estimate", state->estimate, "Measure nothing: estimate times by the sizes of tensors");
  takes(verb->add_option("--max-inflight", state->split.max_inflight, "Requests that may be in the pipeline at once")
            ->capture_default_str(),
        {1, artifact::kMostInFlight, 16});
  verb->add_flag("--simulate", state->simulate, "Show how a simulated stream runs: times by stage, latencies");
  verb->footer(
      "Stages are measured one after another on this machine; run it where the pipeline will run.\n"
      "Example: headrace pipeline split resnet50.onnx --stages 2 -o pipe.so --shape data=1,3,224,224\n"
      "         headrace pipeline split resnet50.onnx --stages 2 --on onednn/native -o pipe.so\n"
      "         headrace pipeline split resnet50.onnx --stages 2 --devices 'cpu/sim(speed=0.5, link=2GB/s)' -o "
      "pipe.so");
  return [state, &common] { return split(*state, common); };
}

}  // namespace headrace::tools
