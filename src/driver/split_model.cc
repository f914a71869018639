#include "driver/split_model.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <set>
#include <thread>

#include "base/interrupt.h"
#include "driver/canonical.h"
#include "driver/cut_stages.h"
#include "driver/output_file.h"
#include "driver/pipeline_memory.h"
#include "driver/register_all.h"
#include "driver/simulate_pipeline.h"
#include "driver/split_problem.h"
#include "driver/target.h"
#include "load/run.h"
#include "passes/forms/to_graph_normal_form.h"
#include "runtime/processors.h"
#include "runtime/thread_pool.h"

namespace headrace::driver {

namespace {

constexpr int32_t kMostStages = 64;

bool has_simulated(const SplitModelOptions& options) {
  return std::any_of(options.devices.begin(), options.devices.end(), [](const auto& one) { return one.has_value(); });
}

void check_simulated(const SplitModelOptions& options) {
  std::set<int32_t> numbers;
  for (const std::optional<devices::SimulatedDevice>& device : options.devices) {
    if (!device) continue;
    if (options.replicas > 1)
      throw_user_error("replicas are for processors, and {} is a simulated device; ask for 1", name_of(*device));
    if (!numbers.insert(device->number).second)
      throw_user_error("two stages are on {}; give each device a number of its own", name_of(*device));
  }
}

// Each place with processors has some, each once, that this process may use.
void check_processors(const std::vector<std::vector<int32_t>>& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    const std::vector<int32_t>& cpus = places[i];
    if (cpus.empty())
      throw_user_error(
          "cpus[{}]: it is empty; name processors of that place, or give no place any, so that all run "
          "anywhere",
          i);
    runtime::check_cpus(cpus, fmt::format("cpus[{}]", i));
  }
}

void check(const SplitModelOptions& options) {
  if (options.stages < 1 || options.stages > kMostStages)
    throw_user_error("{} stages were asked for; ask for 1 to {}", options.stages, kMostStages);
  if (options.threads < 1 || options.threads > runtime::kMaxWorkers)
    throw_user_error("{} threads for a stage were asked for; ask for 1 to {}", options.threads, runtime::kMaxWorkers);
  if (options.rounds < 1)
    throw_user_error("{} rounds were asked for; a stage is measured at least once", options.rounds);
  if (options.replicas < 1 || options.replicas > options.stages)
    throw_user_error("{} replicas were asked for; each takes a place, so ask for 1 to {}, the places for stages",
                     options.replicas, options.stages);
  const auto check_count = [&](std::string_view what, size_t given) {
    if (given != 0 && given != static_cast<size_t>(options.stages))
      throw_user_error("{} given for {} stages, and there are {}", what, given, options.stages);
  };
  check_count("processors are", options.cpus.size());
  check_count("backends are", options.backends.size());
  if (options.memory_bytes.size() != 1) check_count("memory is", options.memory_bytes.size());
  for (const int64_t bytes : options.memory_bytes) {
    if (bytes < 1) throw_user_error("the memory of a stage is {} bytes; it is at least 1", bytes);
  }
  check_processors(options.cpus);
  check_count("devices are", options.devices.size());
  check_simulated(options);
}

int64_t to_ns(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

// Options of a compile that are about a whole model and not about one of its stages.
void check(const CompileOptions& compile) {
  if (!compile.plan.empty() || compile.plan_text)
    throw_user_error(
        "a plan (--plan) says where the ops of a whole model go, and each stage is compiled by itself; leave "
        "it out, and choose backends");
  if (!compile.overrides.empty())
    throw_user_error(
        "single ops are placed (--place) in a whole model, and each stage is compiled by itself; leave that out, and "
        "choose backends");
  if (!compile.dump_tir.empty())
    throw_user_error("the loops of stages are not dumped; compile the whole model for that");
}

// Returns the best seconds of a run.
double measure_here(executors::Executor& executor, int32_t rounds) {
  const std::vector<NDArray> inputs = load::zeros_for(executor.inputs());
  double best = INFINITY;
  for (int32_t round = 0; round <= rounds; ++round) {
    poll_interrupt();
    const auto begin = std::chrono::steady_clock::now();
    load::run(executor, inputs);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (round > 0) best = std::min(best, seconds.count());  // the first round warms up
  }
  return best;
}

// Measures on the processors `cpus`; on any if there are none.
double measure(const std::shared_ptr<const load::Artifact>& artifact, int32_t threads, const std::vector<int32_t>& cpus,
               int32_t rounds) {
  const auto executor = load::make_executor(artifact, artifact::kDefaultProgram, {.threads = threads, .cpus = cpus});
  if (cpus.empty()) return measure_here(*executor, rounds);
  double seconds = 0;
  std::exception_ptr error;
  std::thread([&] {
    try {
      runtime::move_this_thread(cpus);
      seconds = measure_here(*executor, rounds);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
  return seconds;
}

// Returns "native", or "onednn, native": the backends whose regions a program has come first.
std::string backends_of(const artifact::Manifest& manifest) {
  std::string names;
  for (const artifact::Backend& backend : manifest.backends) names += backend.name + ", ";
  return names + "native";
}

// One way to split the model.
struct Attempt {
  plan::SplitProblem problem;
  plan::SplitPlan plan;             // its memory is that of the compiled stages
  artifact::PipelinePlan pipeline;  // that of the cut program; its stages have their ports
  std::vector<std::string> models;  // the bytes of each stage's artifact
  std::vector<double> seconds;      // measured time per stage
  std::string refusal;              // why it does not fit the memory of its places; empty: it fits

  // Returns the period of the slowest stage.
  double slowest() const {
    double most = 0;
    for (size_t i = 0; i < seconds.size(); ++i)
      most = std::max(most, seconds[i] / static_cast<double>(plan.stages[i].devices.size()));
    return most;
  }
  int32_t kind_of(size_t stage) const {
    return problem.devices[static_cast<size_t>(plan.stages[stage].devices[0])].kind;
  }
  // Returns what the next plan is made from.
  Attempt without_models() const {
    return {.problem = problem, .plan = plan, .pipeline = {}, .models = {}, .seconds = seconds, .refusal = {}};
  }
  // Returns whether the attempt should be kept instead of the other one.
  bool is_better_than(const Attempt& other) const {
    if (refusal.empty() != other.refusal.empty()) return refusal.empty();
    return slowest() < other.slowest();
  }
};

class Splitter {
 public:
  Splitter(const Model& model, const CompileOptions& compile, const SplitModelOptions& options)
      : model_(model), compile_(compile), options_(options) {
    register_all();
    compile_.threads = options.threads;
    compile_.progress = {};
    const IRModule without_lets = passes::to_graph_normal_form(model.module);
    model_.module = run_canonical_passes(without_lets, make_relay_context(compile_, [](const pass::PassNote&) {}));
    line_ = read_straight_line(model_.module);
    if (line_.calls.empty()) throw_user_error("the model computes nothing, so there is nothing to split");
    places_ = make_places(compile_, options);
  }

  SplitModel run() {
    const cost::Machine machine = machine_of(choose_target(codegen::NativeCompiler::load(), compile_.target));
    plan::SplitProblem problem = make_split_problem(line_, machine, places_, options_);
    say("plan");
    plan::SplitPlan first = plan::split_pipeline(problem);
    Attempt best = attempt(std::move(problem), std::move(first));
    Attempt last = best.without_models();
    int32_t num_plans = 1;
    while (num_plans <= options_.replans && best.plan.stages.size() > 1) {
      plan::SplitProblem corrected = correct(last);
      plan::SplitPlan plan = plan::split_pipeline(corrected);
      if (plan.stage_of_node == last.plan.stage_of_node) break;
      Attempt next = attempt(std::move(corrected), std::move(plan));
      ++num_plans;
      last = next.without_models();
      if (next.is_better_than(best)) best = std::move(next);
    }
    if (!best.refusal.empty()) throw_user_error("{}", best.refusal);
    return finish(std::move(best), num_plans);
  }

 private:
  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
    poll_interrupt();
  }

  Attempt attempt(plan::SplitProblem problem, plan::SplitPlan plan) const {
    Attempt made{.problem = std::move(problem),
                 .plan = std::move(plan),
                 .pipeline = {},
                 .models = {},
                 .seconds = {},
                 .refusal = {}};
    CutProgram cut = cut_stages(model_, line_, std::span(made.plan.stage_of_node).first(line_.calls.size()));
    const size_t count = cut.stages.size();
    std::vector<std::shared_ptr<const load::Artifact>> artifacts;
    for (size_t i = 0; i < count; ++i) {
      say(fmt::format("compile stage {} of {}", i + 1, count));
      const CompileOptions& compile = places_.kinds[static_cast<size_t>(made.kind_of(i))].compile;
      artifacts.push_back(open_compiled(compile_to_memory(cut.stages[i].model, compile), name_of(i)));
      made.models.push_back(artifacts[i]->library->bytes().value_or_throw());
      if (options_.replans < 0) continue;
      say(fmt::format("measure stage {} of {}", i + 1, count));
      const std::span<const int32_t> places(made.plan.stages[i].devices);
      const double seconds = measure(artifacts[i], options_.threads, cpus_of(places.first(1)), options_.rounds);
      made.seconds.push_back(seconds / places_.kinds[static_cast<size_t>(made.kind_of(i))].speed);
    }
    made.pipeline = pipeline_of(made.plan, std::move(cut), artifacts);
    set_memory(made, artifacts);
    return made;
  }

  artifact::PipelinePlan pipeline_of(const plan::SplitPlan& split, CutProgram cut,
                                     const std::vector<std::shared_ptr<const load::Artifact>>& artifacts) const {
    artifact::PipelinePlan plan{
        .inputs = std::move(cut.inputs), .outputs = std::move(cut.outputs), .max_inflight = options_.max_inflight};
    for (size_t i = 0; i < cut.stages.size(); ++i) {
      plan.models.push_back({.name = name_of(i), .section = ""});
      const std::vector<int32_t>& places = split.stages[i].devices;
      plan.groups.push_back({.name = name_of(i), .cpus = cpus_of(places)});
      if (const devices::SimulatedDevice* device = device_of(places[0]))
        plan.groups.back().location = plan_location(*device);
      const artifact::Manifest& manifest = artifacts[i]->manifest();
      const artifact::Program& program = *artifact::find_program(manifest, artifact::kDefaultProgram);
      plan.stages.push_back({.name = name_of(i),
                             .backend = backends_of(manifest),
                             .model = static_cast<int32_t>(i),
                             .program = artifact::kDefaultProgram,
                             .inputs = stage_ports(program.inputs),
                             .outputs = stage_ports(program.outputs),
                             .sources = std::move(cut.stages[i].sources),
                             .group = static_cast<int32_t>(i),
                             .replicas = static_cast<int32_t>(places.size()),
                             .threads = options_.threads,
                             .isolation = options_.isolation,
                             .is_pure = options_.isolation == artifact::PipelineIsolation::process});
    }
    return plan;
  }

  // Returns the simulated device of a place; null for processors.
  const devices::SimulatedDevice* device_of(int32_t place) const {
    if (options_.devices.empty()) return nullptr;
    const auto& device = options_.devices[static_cast<size_t>(place)];
    return device ? &*device : nullptr;
  }

  // Puts the memory of the compiled stages in the place of the planner's estimates, and says why the first stage that
  // does not fit its place does not: only a compiled program says how much working memory it has.
  void set_memory(Attempt& made, const std::vector<std::shared_ptr<const load::Artifact>>& artifacts) const {
    std::vector<const artifact::Manifest*> manifests;
    for (const auto& artifact : artifacts) manifests.push_back(&artifact->manifest());
    const std::vector<StageMemory> memory = memory_of_stages(made.pipeline, manifests);
    for (size_t i = 0; i < memory.size(); ++i) {
      plan::SplitStage& stage = made.plan.stages[i];
      stage.memory_bytes = memory[i].total();
      for (const int32_t place : stage.devices) {
        const int64_t limit = memory_limit(options_, static_cast<size_t>(place));
        if (stage.memory_bytes <= limit || !made.refusal.empty()) continue;
        const devices::SimulatedDevice* device = device_of(place);
        made.refusal = fmt::format(
            "stage {} takes {} {}, {} of them for weights and working memory, and it has {}; give it more memory, or "
            "ask for more stages",
            i, devices::memory_text(stage.memory_bytes),
            device == nullptr ? fmt::format("in place {}", place) : "on " + devices::name_of(*device),
            devices::memory_text(memory[i].program_bytes), devices::memory_text(limit));
      }
    }
  }

  // Scales the times of each stage's calls, so that they add up to what was measured: for the kind of the place, and
  // for places that run the same code at another speed.
  plan::SplitProblem correct(const Attempt& made) const {
    plan::SplitProblem problem = made.problem;
    for (size_t i = 0; i < line_.calls.size(); ++i) {
      const auto stage = static_cast<size_t>(made.plan.stage_of_node[i]);
      const double planned = static_cast<double>(std::max<int64_t>(made.plan.stages[stage].compute_ns, 1));
      const PlaceKind& measured = places_.kinds[static_cast<size_t>(made.kind_of(stage))];
      for (size_t kind = 0; kind < places_.kinds.size(); ++kind) {
        if (places_.kinds[kind].compile.backends != measured.compile.backends) continue;
        int64_t& time = problem.nodes[i].time_ns[kind];
        time = std::llround(static_cast<double>(time) * made.seconds[stage] * 1e9 / planned);
      }
    }
    return problem;
  }

  // Returns the processors of some places; none: any.
  std::vector<int32_t> cpus_of(std::span<const int32_t> places) const {
    std::set<int32_t> all;
    for (const int32_t place : places) {
      if (options_.cpus.empty()) break;
      const std::vector<int32_t>& cpus = options_.cpus[static_cast<size_t>(place)];
      all.insert(cpus.begin(), cpus.end());
    }
    return {all.begin(), all.end()};
  }

  static std::string name_of(size_t stage) { return fmt::format("stage{}", stage); }

  // Puts what was measured in the place of the plan's own times.
  static void set_measured(Attempt& made) {
    made.plan.period_ns = 0;
    for (size_t i = 0; i < made.plan.stages.size(); ++i) {
      plan::SplitStage& stage = made.plan.stages[i];
      stage.compute_ns = to_ns(made.seconds[i]);
      const int64_t transfers = stage.transfer_in_ns + stage.transfer_out_ns;
      const bool overlaps = made.problem.devices[static_cast<size_t>(stage.devices[0])].overlaps;
      stage.time_ns = overlaps ? std::max(stage.compute_ns, transfers) : stage.compute_ns + transfers;
      const auto replicas = static_cast<int64_t>(stage.devices.size());
      stage.period_ns = (stage.time_ns + replicas - 1) / replicas;
      made.plan.period_ns = std::max(made.plan.period_ns, stage.period_ns);
    }
  }

  SplitModel finish(Attempt best, int32_t num_plans) const {
    if (options_.replans >= 0) {
      best.problem = correct(best);
      set_measured(best);
      best.plan.lower_bound_ns = std::min(plan::split_pipeline(best.problem).lower_bound_ns, best.plan.period_ns);
    }
    SplitModel result{
        .content = {.plan = std::move(best.pipeline), .models = std::move(best.models), .first_values = {}},
        .problem = std::move(best.problem),
        .plan = std::move(best.plan),
        .seconds = std::move(best.seconds),
        .num_plans = num_plans};
    for (size_t place = 0; place < result.problem.devices.size(); ++place)
      result.problem.devices[place].memory_bytes = memory_limit(options_, place);  // without the search's reserve
    return result;
  }

  Model model_;
  CompileOptions compile_;
  const SplitModelOptions& options_;
  StraightLine line_;
  Places places_;
};

}  // namespace

SplitModel split_model(const Model& model, const CompileOptions& compile, const SplitModelOptions& options) {
  check(options);
  check(compile);
  SplitModelOptions own = options;
  if (!has_simulated(own)) own.devices.clear();
  return Splitter(model, compile, own).run();
}

SplitFile split_to_file(const Model& model, const std::string& path, const CompileOptions& compile,
                        const SplitModelOptions& options) {
  check_no_input(path, model.files, "the model");
  check_pipeline_name(path);
  static_cast<void>(OutputFile(path));  // throws where nothing can be written
  SplitFile file{.split = split_model(model, compile, options), .nbytes = 0, .simulated = {}, .simulation = {}};
  SavedPipeline saved = save_pipeline(std::move(file.split.content), path);
  file.split.content = {.plan = std::move(saved.plan), .models = {}, .first_values = {}};
  file.nbytes = saved.nbytes;
  file.simulated = has_simulated(options) ? model_of_pipeline(file.split.content.plan, file.split.plan)
                                          : plan::model_of_plan(file.split.problem, file.split.plan);
  file.simulation = plan::simulate(file.simulated);
  return file;
}

Map<std::string, Value> report_of(const SplitFile& file) {
  const auto seconds = [](int64_t ns) { return Value(static_cast<double>(ns) * 1e-9); };
  const SplitModel& split = file.split;
  Array<Value> stages;
  for (size_t i = 0; i < split.plan.stages.size(); ++i) {
    const plan::SplitStage& stage = split.plan.stages[i];
    stages.push_back(
        Value(Map<std::string, Value>{{"name", Value(split.content.plan.stages[i].name)},
                                      {"backend", Value(split.content.plan.stages[i].backend)},
                                      {"device", Value(devices::place_text(split.content.plan.groups[i].location))},
                                      {"replicas", Value(static_cast<int64_t>(stage.devices.size()))},
                                      {"nodes", Value(int64_t{stage.num_nodes})},
                                      {"seconds", seconds(stage.compute_ns)},
                                      {"transfer_seconds", seconds(stage.transfer_in_ns + stage.transfer_out_ns)},
                                      {"memory_bytes", Value(stage.memory_bytes)}}));
  }
  return {{"bytes", Value(file.nbytes)},
          {"stages", Value(stages)},
          {"measured", Value(!split.seconds.empty())},
          {"plans", Value(int64_t{split.num_plans})},
          {"period_seconds", seconds(split.plan.period_ns)},
          {"lower_bound_seconds", seconds(split.plan.lower_bound_ns)},
          {"predicted_per_second", Value(file.simulation.requests_per_second)}};
}

}  // namespace headrace::driver
