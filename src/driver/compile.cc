#include "driver/compile.h"

#include <algorithm>
#include <chrono>

#include "artifact/trailer.h"
#include "base/interrupt.h"
#include "base/memory_file.h"
#include "driver/canonical.h"
#include "driver/check_options.h"
#include "driver/check_size.h"
#include "driver/compile_regions.h"
#include "driver/dump_loops.h"
#include "driver/link_artifact.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "lower/user_ops/user_op.h"
#include "lower/lower_function.h"
#include "ops/call_fusion.h"
#include "ops/op_handles.h"
#include "partition/place.h"
#include "passes/fold/fold_constant.h"
#include "passes/pipeline.h"
#include "plan/graph_program.h"
#include "plan/join_views.h"
#include "plan/plan_memory.h"
#include "plan/read_program.h"
#include "plan/verify_program.h"
#include "relay/text/print.h"
#include "runtime/thread_pool.h"
#include "tir/verify.h"
#include "tir/workspace.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

int processors_for(int32_t jobs) { return jobs > 0 ? jobs : runtime::num_processors(); }

pass::PassContext make_tir_context(const CompileOptions& options) {
  return make_context(options, [](const IRModule& module) { tir::verify(module); });
}

// Verifies the loops. The code generator does not check its input, and would emit invalid LLVM for malformed loops.
void check_loops(const IRModule& loops) {
  for (const auto& [name, function] : loops->functions()) {
    const std::vector<std::string> breaches = tir::find_breaches(function.cast<tir::PrimFuncNode>());
    HEADRACE_CHECK(breaches.empty(), "the kernel {} is not well-formed: {}", name->name_hint, breaches.front());
  }
}

artifact::CompileNote to_note(const pass::PassNote& note) {
  return {.pass = note.pass, .op = to_string(note.span), .reason = note.reason, .message = note.message};
}

artifact::BoundParam bound_param(const std::string& name, const NDArray& data) {
  const NDArray dense = data.to_dense();
  return {.spec = {.name = name, .dtype = dense.dtype(), .shape = dense.shape()},
          .hash = artifact::content_hash({dense.data<const uint8_t>(), dense.size_bytes()})};
}

// A program on its way to native code; each stage fills in the members that it makes.
struct NativeProgram {
  plan::ProgramNames names;
  IRModule module = {};  // after the canonical passes, then after the native ones
  plan::Program plan = {};
  int64_t workspace_bytes = 0;  // workspace per thread: the largest that a kernel needs
  bool is_fallback = false;
};

// Returns `wanted`, or a name like it that is not empty and not taken: a function may have two parameters of one name,
// and the inputs of a program may not.
std::string free_name(const std::string& wanted, const std::vector<std::string>& taken) {
  std::string name = wanted.empty() ? "input" : wanted;
  for (int i = 1; std::find(taken.begin(), taken.end(), name) != taken.end(); ++i)
    name = fmt::format("{}_{}", wanted.empty() ? "input" : wanted, i);
  return name;
}

// The native form of a region, which runs where its backend is missing.
NativeProgram fallback_of(const partition::Region& region, const IRModule& module) {
  const relay::Function& function = region.function;
  const auto native = relay::make_function(function->params, function->body, function->ret_type);
  NativeProgram program{
      .names = {.program = region.name}, .module = closed_module("main", native, module), .is_fallback = true};
  for (const relay::Var& param : region.function->params)
    program.names.inputs.push_back(free_name(param->name_hint, program.names.inputs));
  const size_t num_outputs = leaves_of(region.function->body->checked_type()).size();
  for (size_t i = 0; i < num_outputs; ++i) program.names.outputs.push_back(fmt::format("output{}", i));
  return program;
}

// The state of one compile. Each stage reads the members that earlier stages wrote.
class Compilation {
 public:
  Compilation(Model model, const CompileOptions& options, bool makes_objects)
      : model_(std::move(model)),
        options_(options),
        makes_objects_(makes_objects),
        compiler_(codegen::NativeCompiler::load()) {
    register_all();
    code_.target = choose_target(compiler_, options.target);
    context_ = make_relay_context(options, [this](const pass::PassNote& note) { report_.notes.push_back(note); });
    context_.config.set(passes::kProgramBytes, Value(passes::program_bytes(model_.module)));
  }

  // Runs all stages. The last one calls `link` with the code that the others produced.
  template <typename F>
  CompileReport run(F&& link) {
    code_.module_roots = model_.modules;
    code_.modules = save_modules(code_.module_roots);  // first: what cannot be saved ends a compile before it begins
    IRModule canonical;
    stage("canonical passes", [&] { canonical = run_canonical_passes(std::move(model_.module), context_); });
    stage("placement", [&] {
      const Placing placing = make_placing(canonical, options_);
      canonical = {};
      placed_ = partition::place(placing.module, *placing.decider);
      check_backend_options(options_, placing.backends, placed_.regions);
    });
    stage("backends", [&] { compile_backends(); });
    stage("native passes", [&] { run_native_passes(); });
    stage("plan", [&] { plan(); });
    stage("lower", [&] { lower(); });
    stage("native code", [&] { generate_code(); });
    LinkedArtifact linked;
    stage("link", [&] { linked = link(code_); });
    report_.manifest = std::move(linked.manifest);
    report_.artifact_bytes = linked.nbytes;
    return std::move(report_);
  }

 private:
  static constexpr int kStages = 8;

  template <typename F>
  void stage(std::string_view name, F&& body) {
    if (options_.progress) options_.progress(name, static_cast<int>(report_.stages.size()), kStages);
    poll_interrupt();
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    report_.stages.push_back({std::string(name), seconds.count()});
  }

  // Calls `body` with each program. A fallback that has no native form is left out and noted: it is not what was asked
  // for, and its region runs without one.
  template <typename F>
  void for_each_program(F&& body) {
    std::vector<NativeProgram> kept;
    for (NativeProgram& program : programs_) {
      try {
        body(program);
        kept.push_back(std::move(program));
      } catch (const UserError& error) {
        if (!program.is_fallback) throw;
        report_.notes.push_back(
            {.reason = HR_REASON_PLACE_NO_FALLBACK,
             .pass = "placement",
             .message = fmt::format("the region '{}' runs on its backend only, because it cannot be "
                                    "compiled natively: {}",
                                    program.names.program, error.message())});
      }
    }
    programs_ = std::move(kept);
  }

  void compile_backends() {
    compiled_ = compile_regions(placed_.regions, placed_.module, model_.modules, options_.target, code_.target,
                                backend_options(options_));
    check_refused();
    partition::return_to_native(placed_, compiled_.refused);
    drop_refused(compiled_);
    check_extern();
    code_.module_roots.insert(code_.module_roots.end(), compiled_.modules.begin(), compiled_.modules.end());
    code_.backends = compiled_.backends;
    code_.sources = compiled_.sources;
  }

  // Nothing here computes extern.onnx.
  void check_extern() const {
    for (const artifact::Placement& row : placed_.placement) {
      if (row.kind == op::kExternOnnx.name() && row.backend == partition::kNative)
        throw UserError(fmt::format("there is no op for the node '{}' of an ONNX model, and no backend computes it: {}",
                                    row.op, row.message.empty() ? "none is chosen" : row.message));
    }
  }

  // A region that the program itself marks is its backend's, or nobody's.
  void check_refused() const {
    for (size_t i = 0; i < placed_.regions.size(); ++i) {
      const partition::Region& region = placed_.regions[i];
      if (compiled_.refused[i] && region.is_by_hand)
        throw_at(region.function->span, "compile",
                 fmt::format("the backend '{}' does not compile the region '{}': {}", region.backend, region.name,
                             compiled_.refused[i]->message));
    }
  }

  void run_native_passes() {
    programs_.push_back({.names = {.inputs = model_.inputs, .outputs = model_.outputs}, .module = placed_.module});
    for (const partition::Region& region : placed_.regions) programs_.push_back(fallback_of(region, placed_.module));
    placed_.module = {};  // what the passes replace needs no memory any more
    for_each_program([&](NativeProgram& program) {
      if (program.is_fallback) program.module = run_canonical_passes(std::move(program.module), context_);
      program.module = pass::run_passes(passes::native(machine_of(code_.target)), std::move(program.module), context_);
    });
  }

  void plan() {
    for_each_program([&](NativeProgram& program) {
      program.plan = plan::read_program(program.module, groups_);
      if (program.is_fallback && !program.plan.bounded_outputs.empty())
        throw_user_error("only a run tells the size of one of its results");
      if (options_.passes.opt_level > 0) plan::join_views(program.plan, groups_);
      plan::plan_memory(program.plan);
      const std::vector<std::string> breaches = plan::find_breaches(program.plan);
      HEADRACE_CHECK(breaches.empty(), "the plan of '{}' is not well-formed: {}", program.names.program,
                     breaches.front());
      check_run_size(plan::arena_bytes(program.plan, {}));
    });
  }

  void lower() {
    for_each_program([&](NativeProgram& program) { lower_kernels(program); });
    for (CompiledRegion& region : compiled_.regions) {
      if (region.kernel) region.workspace_bytes = prepare_kernel(region.kernel);
    }
    for (const NativeProgram& program : programs_) emit(program);
    for (size_t i = 0; i < placed_.regions.size(); ++i) emit(placed_.regions[i], compiled_.regions[i]);
    save_external_modules(code_);
  }

  // Lowers the kernels of a program that no earlier program has.
  void lower_kernels(NativeProgram& program) {
    const cost::Machine machine = machine_of(code_.target);
    IRModule loops = make_module();
    for (const auto& [name, function] : program.plan.functions) {
      if (plan::import_of(name, *function) || workspaces_.contains(name->name_hint)) continue;
      poll_interrupt();
      loops->add_function(name, lower::lower_function(function, name->name_hint, machine));
    }
    if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".lowered.tir");
    std::vector<tir::PrimFunc> lowered;
    for (const auto& [name, function] : loops->functions()) lowered.push_back(function.cast<tir::PrimFuncNode>());
    loops = pass::run_passes(tir_passes::pipeline(), loops, make_tir_context(options_));
    check_loops(loops);
    if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".tir");
    for (const auto& [name, function] : loops->functions())
      add_kernel(program, name, function.cast<tir::PrimFuncNode>());
    code_.loops.insert(code_.loops.end(), lowered.begin(), lowered.end());
    for (const auto& [name, function] : program.plan.functions) {
      if (const auto known = workspaces_.find(name->name_hint); known != workspaces_.end())
        program.workspace_bytes = std::max(program.workspace_bytes, known->second);
    }
  }

  // Prepares the loops that a backend made of a region for code generation; returns the bytes of their workspace.
  int64_t prepare_kernel(const tir::PrimFunc& kernel) {
    IRModule loops = make_module();
    loops->add_function(make_global_var(tir::symbol_of(*kernel)), kernel);
    loops = pass::run_passes(tir_passes::pipeline(), loops, make_tir_context(options_));
    check_loops(loops);
    code_.loops.push_back(kernel);
    for (const auto& [name, function] : loops->functions()) code_.kernels.push_back(function.cast<tir::PrimFuncNode>());
    return static_cast<int64_t>(tir::workspace_of(*code_.kernels.back()).size_bytes);
  }

  void add_kernel(const NativeProgram& program, const GlobalVar& name, tir::PrimFunc kernel) {
    const auto workspace = static_cast<int64_t>(tir::workspace_of(*kernel).size_bytes);
    for (const auto& [known, function] : program.plan.functions) {
      if (known->name_hint == name->name_hint) check_workspace_size(workspace, function->span);
    }
    workspaces_.emplace(name->name_hint, workspace);
    code_.kernels.push_back(std::move(kernel));
  }

  void emit(const NativeProgram& source) {
    artifact::Program program = plan::emit_graph_program(source.plan, source.names, code_.weights);
    if (source.is_fallback) program.region = program.name;
    program.memory.workspace_bytes = source.workspace_bytes;
    for (const CompiledRegion& region : compiled_.regions) {
      if (!source.is_fallback)
        program.memory.workspace_bytes = std::max(program.memory.workspace_bytes, region.workspace_bytes);
    }
    program.target = {code_.target.triple, code_.target.cpu, code_.target.enabled};
    program.compiler = HEADRACE_VERSION;
    if (!source.is_fallback) {
      for (const auto& [name, data] : model_.bound) program.bound_params.push_back(bound_param(name, data));
      program.placement = placed_.placement;
      for (const pass::PassNote& note : report_.notes) program.notes.push_back(to_note(note));
      note_unfused(source.plan, program.notes);
    }
    code_.programs.push_back(std::move(program));
  }

  // Notes why ops that users registered were not fused with others.
  static void note_unfused(const plan::Program& plan, std::vector<artifact::CompileNote>& notes) {
    for (const plan::Step& step : plan.steps) {
      const auto* call = step.function ? plan.functions[*step.function].second->body.as<relay::CallNode>() : nullptr;
      const bool is_users = call != nullptr && call->as_op() != nullptr && lower::is_user_op(call->op.cast<OpNode>());
      const std::string why = is_users ? ops::why_opaque(*call) : "";
      if (why.empty()) continue;
      notes.push_back(
          {.pass = "FuseOps", .op = to_string(step.span), .reason = HR_REASON_FUSE_PATTERN, .message = why});
    }
  }

  void emit(const partition::Region& region, const CompiledRegion& compiled) {
    std::vector<NDArray> weights;
    IRModule module = make_module();
    module->add_function(make_global_var(region.name), region.function);
    const bool has_fallback = std::any_of(code_.programs.begin(), code_.programs.end(),
                                          [&](const auto& program) { return program.name == region.name; });
    artifact::Region row{.name = region.name,
                         .backend = region.backend,
                         .symbol = compiled.symbol,
                         .fallback = has_fallback ? region.name : "",
                         .body = relay::print_module(module, {.weights = &weights}),
                         .body_weights = {}};
    for (const NDArray& weight : weights) row.body_weights.push_back(code_.weights.add(weight));
    code_.regions.push_back(std::move(row));
    code_.region_modules.push_back(compiled.module);
  }

  void generate_code() {
    const int jobs = processors_for(options_.jobs);
    code_.opt_level = options_.passes.opt_level == 0 ? 1 : 3;
    if (makes_objects_)
      code_.objects = compiler_.compile(code_.kernels, code_.target, {.opt_level = code_.opt_level, .jobs = jobs});
    code_.objects.insert(code_.objects.end(), compiled_.objects.begin(), compiled_.objects.end());
    code_.default_threads =
        options_.threads > 0 ? options_.threads : static_cast<int32_t>(options_.target->count("num-cores"));
  }

  Model model_;  // without its module, once the canonical passes have run
  const CompileOptions& options_;
  bool makes_objects_;  // false for text formats, which are printed from the kernels' loops
  codegen::NativeCompiler compiler_;
  pass::PassContext context_;
  partition::PlacedModule placed_;
  CompiledRegions compiled_;
  std::vector<NativeProgram> programs_;        // the model's own first
  plan::GroupTable groups_;                    // shared by all programs
  std::map<std::string, int64_t> workspaces_;  // by the name of a lowered kernel
  CompiledCode code_;
  CompileReport report_;
};

}  // namespace

CompileReport compile_to_file(Model model, const std::string& path, const CompileOptions& options) {
  check_options(options);
  const std::vector<std::string> inputs = model.files;
  check_no_input(path, inputs, "the model");
  const ModuleFormat format = module_format(path);
  OutputFile file(path, file_kind(format));
  return Compilation(std::move(model), options, !is_text(format)).run([&](const CompiledCode& code) {
    return write_module(code, format, file, options.weights_limit_bytes, inputs);
  });
}

CompiledModel compile_to_memory(Model model, const CompileOptions& options, CompiledCode* kept) {
  check_options(options);
  Descriptor descriptor = make_memory_file("the compiled model").value_or_throw();
  CompileReport report = Compilation(std::move(model), options, true).run([&](CompiledCode& code) {
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
