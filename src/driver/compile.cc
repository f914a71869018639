#include "driver/compile.h"

#include <algorithm>
#include <chrono>

#include "artifact/trailer.h"
#include "base/interrupt.h"
#include "base/memory_file.h"
#include "driver/all_passes.h"
#include "driver/check_devices.h"
#include "driver/check_options.h"
#include "driver/check_size.h"
#include "driver/dump_loops.h"
#include "driver/link_artifact.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "lower/user_ops/user_op.h"
#include "lower/lower_function.h"
#include "ops/call_fusion.h"
#include "pass/instruments.h"
#include "passes/forms/bound_outputs.h"
#include "passes/pipeline.h"
#include "plan/destination_passing.h"
#include "plan/graph_program.h"
#include "plan/plan_memory.h"
#include "relay/infer/infer_type.h"
#include "relay/unique_binders.h"
#include "relay/verify.h"
#include "runtime/thread_pool.h"
#include "tir/verify.h"
#include "tir/workspace.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

using ModuleCheck = std::function<void(const IRModule&)>;
using NoteSink = std::function<void(const pass::PassNote&)>;

int processors_for(int32_t jobs) { return jobs > 0 ? jobs : runtime::num_processors(); }

pass::PassContext make_context(const CompileOptions& options, ModuleCheck verify) {
  pass::PassContext context = options.passes;
  context.infer_type = {};
  context.threads = processors_for(options.jobs);
  if (options.verify_each) context.instruments.push_back(pass::make_verify_instrument(std::move(verify)));
  return context;
}

pass::PassContext make_relay_context(const CompileOptions& options, NoteSink note) {
  pass::PassContext context = make_context(options, [](const IRModule& module) { relay::verify(module); });
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  context.note = std::move(note);
  return context;
}

pass::PassContext make_tir_context(const CompileOptions& options) {
  return make_context(options, [](const IRModule& module) { tir::verify(module); });
}

// Rejects models that set attributes reserved for the compiler.
void check_attributes(const IRModule& module) {
  const auto* main = module->lookup("main").as<relay::FunctionNode>();
  if (main != nullptr && main->attrs.contains(passes::kBoundedOutputs))
    throw_at(main->span, "compile",
             fmt::format("@main has the attribute {}, which the compiler makes; compile the program without it",
                         passes::kBoundedOutputs));
}

// Verifies the loops. The code generator does not check its input, and would emit invalid LLVM for malformed loops.
void check_loops(const IRModule& loops) {
  for (const auto& [name, function] : loops->functions()) {
    const std::vector<std::string> breaches = tir::find_breaches(function.cast<tir::PrimFuncNode>());
    HEADRACE_CHECK(breaches.empty(), "the kernel {} is not well-formed: {}", name->name_hint, breaches.front());
  }
}

// Runs the canonical and the native passes. Returns typed relay whose op calls lie in fused groups.
IRModule run_relay_passes(const IRModule& module, const CompileOptions& options, NoteSink note) {
  const pass::PassContext context = make_relay_context(options, std::move(note));
  std::vector<pass::Pass> list = passes::canonical();
  for (pass::Pass& pass : passes::native()) list.push_back(std::move(pass));
  const IRModule typed = relay::infer_type(relay::unique_binders(module));
  check_attributes(typed);
  check_devices(typed);
  check_tensor_sizes(typed);
  return pass::run_passes(list, typed, context);
}

artifact::BoundParam bound_param(const std::string& name, const NDArray& data) {
  const NDArray dense = data.to_dense();
  return {.spec = {.name = name, .dtype = dense.dtype(), .shape = dense.shape()},
          .hash = artifact::content_hash({dense.data<const uint8_t>(), dense.size_bytes()})};
}

// The state of one compile. Each stage reads the members that earlier stages wrote.
class Compilation {
 public:
  Compilation(const Model& model, const CompileOptions& options, bool makes_objects)
      : model_(model), options_(options), makes_objects_(makes_objects), compiler_(codegen::NativeCompiler::load()) {
    register_all();
    code_.target = choose_target(compiler_, options.target);
  }

  // Runs all stages. The last one calls `link` with the code that the others produced.
  template <typename F>
  CompileReport run(F&& link) {
    code_.modules = save_modules(model_.modules);
    stage("relay passes", [&] {
      module_ =
          run_relay_passes(model_.module, options_, [&](const pass::PassNote& note) { report_.notes.push_back(note); });
    });
    stage("plan", [&] { plan(); });
    stage("lower", [&] { lower_kernels(); });
    stage("native code", [&] { generate_code(); });
    LinkedArtifact linked;
    stage("link", [&] { linked = link(code_); });
    report_.manifest = std::move(linked.manifest);
    report_.artifact_bytes = linked.nbytes;
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
    artifact::Program& program = code_.program;
    program = plan::emit_graph_program(module_, {model_.inputs, model_.outputs}, code_.weights);
    check_run_size(program.memory.arena_bytes);
    program.target = {code_.target.triple, code_.target.cpu, code_.target.enabled};
    program.compiler = HEADRACE_VERSION;
    for (const auto& [name, data] : model_.bound) program.bound_params.push_back(bound_param(name, data));
    for (const artifact::Step& step : program.graph.steps) {
      if (step.kind != artifact::StepKind::kCopy) program.placement.push_back(placement_of(step));
    }
  }

  // Returns which backend runs the step. For an op that a user registered, also why it was not fused with others.
  artifact::Placement placement_of(const artifact::Step& step) const {
    if (step.kind == artifact::StepKind::kExternal)
      return {.op = step.op,
              .backend = "external",
              .reason = HR_REASON_NONE,
              .message = fmt::format("calls the function '{}'", step.callee)};
    const auto group = module_->lookup(step.callee).cast<relay::FunctionNode>();
    const auto* call = group->body.as<relay::CallNode>();
    const bool is_users = call != nullptr && call->as_op() != nullptr && lower::is_user_op(call->op.cast<OpNode>());
    std::string why = is_users ? ops::why_opaque(*call) : "";
    const hr_reason reason = why.empty() ? HR_REASON_NONE : HR_REASON_FUSE_PATTERN;
    return {.op = step.op, .backend = "native", .reason = reason, .message = std::move(why)};
  }

  void lower_kernels() {
    const cost::Machine machine = machine_of(code_.target);
    IRModule loops = make_module();
    for (const auto& [name, function] : module_->functions()) {
      if (name->name_hint == "main") continue;
      poll_interrupt();
      const auto group = function.cast<relay::FunctionNode>();
      if (ops::external_of(group->body) != nullptr) continue;
      loops->add_function(name, lower::lower_function(group, name->name_hint, machine));
    }
    if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".lowered.tir");
    for (const auto& [name, function] : loops->functions()) code_.loops.push_back(function.cast<tir::PrimFuncNode>());
    loops = pass::run_passes(tir_passes::pipeline(), loops, make_tir_context(options_));
    check_loops(loops);
    if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".tir");
    for (const auto& [name, function] : loops->functions()) {
      code_.kernels.push_back(function.cast<tir::PrimFuncNode>());
      const auto workspace = static_cast<int64_t>(tir::workspace_of(*code_.kernels.back()).size_bytes);
      check_workspace_size(workspace, module_->lookup(name->name_hint)->span);
      int64_t& largest = code_.program.memory.workspace_bytes;
      largest = std::max(largest, workspace);
    }
  }

  void generate_code() {
    const int jobs = processors_for(options_.jobs);
    code_.opt_level = options_.passes.opt_level == 0 ? 1 : 3;
    if (makes_objects_)
      code_.objects = compiler_.compile(code_.kernels, code_.target, {.opt_level = code_.opt_level, .jobs = jobs});
    code_.default_threads =
        options_.threads > 0 ? options_.threads : static_cast<int32_t>(options_.target->count("num-cores"));
  }

  const Model& model_;
  const CompileOptions& options_;
  bool makes_objects_;  // false for text formats, which are printed from the kernels' loops
  codegen::NativeCompiler compiler_;
  IRModule module_;
  CompiledCode code_;
  CompileReport report_;
};

}  // namespace

CompileReport compile_to_file(const Model& model, const std::string& path, const CompileOptions& options) {
  check_options(options);
  check_no_input(path, model.files, "the model");
  const ModuleFormat format = module_format(path);
  OutputFile file(path, file_kind(format));
  return Compilation(model, options, !is_text(format)).run([&](const CompiledCode& code) {
    return write_module(code, format, file, options.weights_limit_bytes, model.files);
  });
}

CompiledModel compile_to_memory(const Model& model, const CompileOptions& options, CompiledCode* kept) {
  check_options(options);
  Descriptor descriptor = make_memory_file("the compiled model").value_or_throw();
  CompileReport report = Compilation(model, options, true).run([&](CompiledCode& code) {
    LinkedArtifact linked = link_artifact(code, descriptor.number(), "the compiled model");
    if (kept != nullptr) *kept = std::move(code);
    return linked;
  });
  return {std::move(descriptor), std::move(report)};
}

std::shared_ptr<const load::Artifact> open_compiled(CompiledModel compiled, const std::string& name) {
  return load::open_artifact(std::move(compiled.descriptor), name).value_or_throw();
}

}  // namespace headrace::driver
