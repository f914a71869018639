#include "load/pipeline_file.h"

#include <fcntl.h>

#include <cerrno>
#include <map>

#include "artifact/artifact_file.h"
#include "base/descriptor.h"
#include "executors/pipeline/plan_spec.h"
#include "runtime/processors.h"

namespace headrace::load {
namespace {

using executors::pipeline::Pipeline;
using executors::pipeline::StageCode;

// An open file, verified.
struct PipelineFile {
  std::string name;
  Descriptor descriptor;
  artifact::ArtifactFile content;

  const artifact::PipelinePlan& plan() const { return *content.manifest.pipeline; }
};

PipelineFile read_file(const std::string& path) {
  Descriptor descriptor = Descriptor::open(path).value_or_throw();
  artifact::ArtifactFile content = artifact::read_artifact_file(descriptor.number(), path).value_or_throw();
  if (!content.manifest.pipeline)
    throw_user_error("'{}' has no pipeline: it is a model, which headrace.load opens in Python, and headrace run",
                     path);
  return {.name = path, .descriptor = std::move(descriptor), .content = std::move(content)};
}

void check_devices(const PipelineFile& file) {
  for (const artifact::PipelineGroup& group : file.plan().groups) {
    if (group.location != artifact::Location{})
      throw_user_error("'{}': group '{}' is on {}, and stages run on cpu:0 alone", file.name, group.name,
                       to_string(group.location));
  }
}

[[noreturn]] void throw_missing(const PipelineFile& file, const artifact::PipelineStage& stage) {
  throw MissingError(
      fmt::format("'{0}' needs the function '{1}' for its stage '{2}', which is not registered; give it when the "
                  "file is loaded (functions={{\"{1}\": f}} in Python), or register it (register_func in Python, "
                  "register_global in C++)",
                  file.name, stage.function, stage.name));
}

// Makes the codes of a file's stages. Stages of one model share its code and weights.
class StageMaker {
 public:
  StageMaker(const PipelineFile& file, const PipelineFileOptions& options) : file_(file), options_(options) {}

  std::shared_ptr<StageCode> make(const artifact::PipelineStage& stage) {
    if (stage.model < 0) return function_stage(stage);
    return stage.isolation == artifact::PipelineIsolation::process ? isolated_stage(stage) : program_stage(stage);
  }

 private:
  std::shared_ptr<StageCode> function_stage(const artifact::PipelineStage& stage) const {
    std::shared_ptr<StageCode> found = options_.find_stage ? options_.find_stage(stage) : nullptr;
    if (found != nullptr) return found;
    if (stage.isolation == artifact::PipelineIsolation::process)
      throw MissingError(
          fmt::format("'{}' calls '{}' for its stage '{}' in a process of Python, which this program does not start; "
                      "open the file in Python (headrace.pipeline.load)",
                      file_.name, stage.function, stage.name));
    const PackedFunc function = find_global(stage.function);
    if (!function) throw_missing(file_, stage);
    return stage.batch ? executors::pipeline::make_batch_function_stage(function, stage.inputs, stage.outputs)
                       : executors::pipeline::make_function_stage(function, stage.inputs, stage.outputs);
  }

  std::shared_ptr<StageCode> program_stage(const artifact::PipelineStage& stage) {
    const executors::ExecutorOptions options{
        .threads = stage.threads, .pool = pool_of(stage), .fallback = options_.fallback};
    std::shared_ptr<executors::Executor> own = executor_of(stage, stage.model, stage.program, options);
    if (!stage.batch) return executors::pipeline::make_executor_stage(std::move(own));
    std::vector<std::shared_ptr<executors::Executor>> executors{std::move(own)};
    for (const artifact::PipelineProgram& other : stage.batch->others)
      executors.push_back(executor_of(stage, other.model, other.program, options));
    return executors::pipeline::make_batch_executor_stage(executors, stage.batch->any_rows);
  }

  std::shared_ptr<executors::Executor> executor_of(const artifact::PipelineStage& stage, int32_t model,
                                                   const std::string& program,
                                                   const executors::ExecutorOptions& options) {
    return of_stage(stage, try_make_executor(of_stage(stage, model_of(model)), program, options));
  }

  // Returns the value; a refusal is thrown, and names the stage.
  template <typename T>
  static T of_stage(const artifact::PipelineStage& stage, Expected<T> found) {
    if (!found.has_value()) throw_refusal({found.refusal().code, in_stage(stage, found.refusal().message)});
    return std::move(found).value_or_throw();
  }

  std::shared_ptr<StageCode> isolated_stage(const artifact::PipelineStage& stage) {
    if (!options_.make_program_stage)
      throw MissingError(
          fmt::format("'{}' runs its stage '{}' in a process of its own, which this program does not start; link "
                      "headrace_isolation "
                      "and give make_program_stage, or open the file with headrace pipeline or in Python",
                      file_.name, stage.name));
    executors::pipeline::isolation::ProgramFiles made{
        .programs = {}, .has_batch = stage.batch.has_value(), .threads = stage.threads, .fallback = options_.fallback};
    if (options_.is_pinned) made.cpus = file_.plan().groups[static_cast<size_t>(stage.group)].cpus;
    const auto add = [&](int32_t model, const std::string& program) {
      const artifact::PipelineModel& of_file = file_.plan().models[static_cast<size_t>(model)];
      made.programs.push_back(
          {.file = shared_file(), .name = file_.name, .section = of_file.section, .program = program});
    };
    add(stage.model, stage.program);
    if (stage.batch) {
      made.any_rows = stage.batch->any_rows;
      for (const artifact::PipelineProgram& other : stage.batch->others) add(other.model, other.program);
    }
    try {
      return options_.make_program_stage(made,
                                         {.is_pure = stage.is_pure, .time_limit_seconds = stage.time_limit_seconds});
    } catch (const MissingError& error) {
      throw MissingError(in_stage(stage, error.message()), error.where());
    } catch (const UserError& error) {
      throw UserError(in_stage(stage, error.message()), error.where());
    }
  }

  static std::string in_stage(const artifact::PipelineStage& stage, const std::string& message) {
    return fmt::format("stage '{}': {}", stage.name, message);
  }

  // Returns threads that no other group has: stages of one group take turns and share them, replicas do not. Null for
  // one thread on any processor, and for as many as the model says.
  std::shared_ptr<runtime::ThreadPool> pool_of(const artifact::PipelineStage& stage) {
    std::vector<int32_t> cpus;
    if (options_.is_pinned) cpus = file_.plan().groups[static_cast<size_t>(stage.group)].cpus;
    const int32_t threads = stage.threads > 0 ? stage.threads : static_cast<int32_t>(cpus.size());
    if (cpus.empty() && threads <= 1) return nullptr;
    if (threads > runtime::kMaxWorkers)
      throw_user_error("'{}': stage '{}' asks for {} threads; {} are the most", file_.name, stage.name, threads,
                       runtime::kMaxWorkers);
    if (stage.replicas > 1) return std::make_shared<runtime::ThreadPool>(threads, cpus);
    std::shared_ptr<runtime::ThreadPool>& known = pools_[{stage.group, threads}];
    if (known == nullptr) known = std::make_shared<runtime::ThreadPool>(threads, cpus);
    return known;
  }

  Expected<std::shared_ptr<const Artifact>> model_of(int32_t index) {
    std::shared_ptr<const Artifact>& known = models_[index];
    if (known != nullptr) return known;
    const artifact::PipelineModel& model = file_.plan().models[static_cast<size_t>(index)];
    Expected<std::shared_ptr<const Artifact>> opened = open_artifact(
        copy_of_file(), *file_.content.elf.find(model.section), fmt::format("{}: {}", file_.name, model.name));
    if (opened.has_value()) known = opened.value();
    return opened;
  }

  Descriptor copy_of_file() const {
    Descriptor same(::fcntl(file_.descriptor.number(), F_DUPFD_CLOEXEC, 0));
    if (same.number() < 0) throw_refusal(artifact::system_refusal(file_.name));
    return same;
  }

  // Returns the file for the processes of all stages, which start again from it.
  std::shared_ptr<const Descriptor> shared_file() {
    if (shared_file_ == nullptr) shared_file_ = std::make_shared<const Descriptor>(copy_of_file());
    return shared_file_;
  }

  const PipelineFile& file_;
  const PipelineFileOptions& options_;
  std::shared_ptr<const Descriptor> shared_file_;
  std::map<int32_t, std::shared_ptr<const Artifact>> models_;
  std::map<std::pair<int32_t, int32_t>, std::shared_ptr<runtime::ThreadPool>> pools_;  // by group and threads
};

// Threads of programs are started before the pipeline is made, which would name the group.
void check_processors(const artifact::PipelinePlan& plan) {
  for (const artifact::PipelineGroup& group : plan.groups)
    runtime::check_cpus(group.cpus, "group '" + group.name + "'");
}

NDArray read_weight(const PipelineFile& file, const artifact::Weight& weight) {
  const NDArray value = NDArray::empty(Shape(weight.shape.begin(), weight.shape.end()), weight.dtype);
  const artifact::ElfSection& section = *file.content.elf.find(artifact::kWeightsSection);
  const std::span<uint8_t> bytes(value.data<uint8_t>(), static_cast<size_t>(weight.nbytes));
  if (!artifact::read_exactly(file.descriptor.number(), section.offset + weight.offset, bytes))
    throw_refusal(artifact::system_refusal(file.name));
  return value;
}

void set_first_values(Pipeline& pipeline, const PipelineFile& file) {
  std::map<std::string, std::map<std::string, NDArray>> values;
  for (const artifact::PipelineParam& param : file.plan().params) {
    if (param.weight < 0) continue;
    const artifact::Weight& weight = file.content.manifest.weights[static_cast<size_t>(param.weight)];
    values[param.group][param.port.name()] = read_weight(file, weight);
  }
  for (const auto& [group, of_group] : values) pipeline.set_params(group, of_group);
}

}  // namespace

std::unique_ptr<Pipeline> open_pipeline(const std::string& path, const PipelineFileOptions& options) {
  const PipelineFile file = read_file(path);
  if (!options.place_stages) check_devices(file);
  if (options.check_plan) options.check_plan(file.plan());
  if (options.is_pinned) check_processors(file.plan());
  StageMaker maker(file, options);
  executors::pipeline::PipelineSpec spec = executors::pipeline::spec_of_plan(
      file.plan(), [&](const artifact::PipelineStage& stage) { return maker.make(stage); });
  if (options.place_stages) options.place_stages(file.plan(), spec);
  if (!options.is_pinned) {
    for (executors::pipeline::GroupSpec& group : spec.groups) group.cpus.clear();
  }
  executors::pipeline::PipelineOptions chosen = options.pipeline;
  chosen.max_inflight = options.max_inflight.value_or(static_cast<size_t>(file.plan().max_inflight));
  auto pipeline = std::make_unique<Pipeline>(std::move(spec), chosen);
  set_first_values(*pipeline, file);
  return pipeline;
}

std::vector<StageFallback> fallbacks_of(const Pipeline& pipeline) {
  std::vector<StageFallback> found;
  for (const executors::pipeline::StageSpec& stage : pipeline.spec().stages) {
    for (const std::shared_ptr<StageCode>& code : stage.replicas) {
      for (executors::FallbackEvent& event : code->fallbacks())
        found.push_back({.stage = stage.name, .event = std::move(event)});
    }
  }
  return found;
}

}  // namespace headrace::load
