#include "driver/compile.h"

#include <headrace/c_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "artifact/check_manifest.h"
#include "artifact/manifest_json.h"
#include "artifact/trailer.h"
#include "base/interrupt.h"
#include "codegen/workspace.h"
#include "driver/check_options.h"
#include "driver/check_size.h"
#include "driver/dump_loops.h"
#include "driver/materialize.h"
#include "driver/output_file.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "lower/lower_function.h"
#include "passes/pipeline.h"
#include "plan/destination_passing.h"
#include "plan/graph_program.h"
#include "plan/plan_memory.h"
#include "plan/static_main_tables.h"
#include "relay/infer/infer_type.h"
#include "relay/verify.h"
#include "runtime/thread_pool.h"
#include "tir/verify.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

pass::PassContext make_context(const CompileOptions& options) {
  pass::PassContext context;
  context.opt_level = options.opt_level;
  context.disabled_pass = options.disabled_passes;
  context.required_pass = options.required_passes;
  context.config = options.config;
  context.instruments = options.instruments;
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  if (options.verify_each) context.verify = [](const IRModule& module) { relay::verify(module); };
  // The evaluator's own compiles run without FoldConstant, and so without an evaluator.
  if (!context.is_disabled("FoldConstant")) context.evaluator = make_compiling_evaluator(options.jobs);
  return context;
}

pass::PassContext make_tir_context(const CompileOptions& options) {
  pass::PassContext context = make_context(options);
  context.infer_type = {};
  if (options.verify_each) context.verify = [](const IRModule& module) { tir::verify(module); };
  return context;
}

// What the passes make of the model: typed relay, in groups.
IRModule run_relay_passes(const IRModule& module, const CompileOptions& options) {
  const pass::PassContext context = make_context(options);
  std::vector<pass::Pass> list = passes::canonical();
  for (pass::Pass& pass : passes::native()) list.push_back(std::move(pass));
  const IRModule typed = relay::infer_type(module);
  check_tensor_sizes(typed);
  return relay::infer_type(pass::run_passes(list, typed, context));
}

// One compile: each stage reads what the stages before it left.
class Compilation {
 public:
  Compilation(const Model& model, const CompileOptions& options)
      : model_(model), options_(options), compiler_(codegen::NativeCompiler::load()) {
    register_all();
    target_ = choose_target(compiler_, options.target);
  }

  CompileReport run(int descriptor, const std::string& name) {
    stage("relay passes", [&] { module_ = run_relay_passes(model_.module, options_); });
    stage("plan", [&] { plan(); });
    stage("lower", [&] { lower_kernels(); });
    stage("native code", [&] { generate_code(); });
    stage("link", [&] { link(descriptor, name); });
    return std::move(report_);
  }

 private:
  static constexpr int kStages = 5;

  template <typename F>
  void stage(std::string_view name, F&& body) {
    if (options_.progress) options_.progress(name, static_cast<int>(report_.stages.size()), kStages);
    poll_interrupt();
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    report_.stages.push_back({std::string(name), seconds.count()});
  }

  void plan() {
    module_ = plan::plan_memory(plan::to_destination_passing(module_));
    program_ = plan::emit_graph_program(module_, {model_.inputs, model_.outputs}, weights_);
    check_run_size(program_.memory.arena_bytes);
    program_.target = {target_.triple, target_.cpu, target_.enabled};
    program_.compiler = HEADRACE_VERSION;
    for (const artifact::Step& step : program_.graph.steps) {
      if (step.kind != artifact::StepKind::kKernel) continue;
      program_.placement.push_back({.op = step.op, .backend = "native", .reason = HR_REASON_NONE, .message = ""});
    }
  }

  void lower_kernels() {
    const lower::ScheduleOptions options = schedule_options(target_);
    IRModule loops = make_module();
    for (const auto& [name, function] : module_->functions) {
      if (name->name_hint == "main") continue;
      poll_interrupt();
      loops->add_function(name, lower::lower_function(function.cast<relay::FunctionNode>(), name->name_hint, options));
    }
    if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".lowered.tir");
    loops = pass::run_passes(tir_passes::pipeline(), loops, make_tir_context(options_));
    if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".tir");
    for (const auto& [name, function] : loops->functions) {
      kernels_.push_back(function.cast<tir::PrimFuncNode>());
      const auto workspace = static_cast<int64_t>(codegen::layout_workspace(*kernels_.back()).size_bytes);
      check_workspace_size(workspace, module_->lookup(name->name_hint)->span);
      program_.memory.workspace_bytes = std::max(program_.memory.workspace_bytes, workspace);
    }
  }

  void generate_code() {
    const int jobs = options_.jobs > 0 ? options_.jobs : runtime::num_processors();
    const std::vector<std::string> main_tables{
        plan::static_main_tables(program_, weights_.weights(), target_.triple, false)};
    objects_ = compiler_.compile(kernels_, target_, {.opt_level = options_.opt_level == 0 ? 1 : 3, .jobs = jobs});
    for (auto& tables : compiler_.compile_llvm(main_tables, target_, {.opt_level = 0, .jobs = 1}))
      objects_.push_back(std::move(tables));
    objects_.push_back({"static main", std::string(plan::static_main_object())});
  }

  void link(int descriptor, const std::string& name) {
    artifact::Manifest& manifest = report_.manifest;
    manifest.programs = {program_};
    manifest.weights = weights_.weights();
    manifest.default_threads =
        options_.threads > 0 ? options_.threads : static_cast<int32_t>(options_.target->count("num-cores"));
    artifact::check_manifest(manifest);  // before anything is written: nobody could open the file
    const std::string text = artifact::write_manifest(manifest);
    std::vector<codegen::DataSection> sections;
    if (!weights_.weights().empty()) sections.push_back(weights_section());
    sections.push_back({.name = artifact::kManifestSection,
                        .size_bytes = text.size(),
                        .chunks = {{0, std::as_bytes(std::span(text))}},
                        .symbol = ""});
    std::vector<std::string> exports{HR_RUN_SYMBOL};
    for (const tir::PrimFunc& kernel : kernels_) exports.push_back(tir::symbol_of(*kernel));
    compiler_.link({.target = target_,
                    .objects = objects_,
                    .sections = sections,
                    .exports = exports,
                    .output = fmt::format("'{}'", name)},
                   descriptor);
    artifact::append_trailer(descriptor, name);
    report_.artifact_bytes = lseek(descriptor, 0, SEEK_END);
  }

  codegen::DataSection weights_section() const {
    codegen::DataSection section{.name = artifact::kWeightsSection,
                                 .size_bytes = static_cast<uint64_t>(std::max<int64_t>(weights_.nbytes(), 1)),
                                 .chunks = {},
                                 .symbol = plan::kWeightsSymbol};
    uint64_t end = 0;
    for (size_t i = 0; i < weights_.weights().size(); ++i) {
      const auto offset = static_cast<uint64_t>(weights_.weights()[i].offset);
      if (offset < end || weights_.weights()[i].nbytes == 0) continue;  // shares another's bytes
      section.chunks.push_back({offset, weights_.tensors()[i].bytes()});
      end = offset + static_cast<uint64_t>(weights_.weights()[i].nbytes);
    }
    return section;
  }

  const Model& model_;
  const CompileOptions& options_;
  codegen::NativeCompiler compiler_;
  codegen::NativeTarget target_;
  IRModule module_;
  artifact::Program program_;
  plan::WeightTable weights_;
  std::vector<tir::PrimFunc> kernels_;
  std::vector<codegen::ObjectCode> objects_;
  CompileReport report_;
};

}  // namespace

CompileReport compile_to_file(const Model& model, const std::string& path, const CompileOptions& options) {
  check_options(options);
  check_no_input(path, model.files, "the model");
  OutputFile file(path);
  CompileReport report = Compilation(model, options).run(file.descriptor(), path);
  file.commit();
  return report;
}

CompiledModel compile_to_memory(const Model& model, const CompileOptions& options) {
  check_options(options);
  Descriptor descriptor(memfd_create("headrace-model", MFD_CLOEXEC));
  if (descriptor.number() < 0) throw_user_error("no memory for the compiled model: {}", std::strerror(errno));
  CompileReport report = Compilation(model, options).run(descriptor.number(), "the compiled model");
  return {std::move(descriptor), std::move(report)};
}

std::shared_ptr<const load::Artifact> open_compiled(CompiledModel compiled, const std::string& name) {
  return load::open_artifact(std::move(compiled.descriptor), name).value_or_throw();
}

}  // namespace headrace::driver
