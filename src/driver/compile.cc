#include "driver/compile.h"

#include <algorithm>
#include <chrono>

#include "base/interrupt.h"
#include "base/memory_file.h"
#include "driver/canonical.h"
#include "driver/check_options.h"
#include "driver/check_size.h"
#include "driver/compile_regions.h"
#include "driver/emit_programs.h"
#include "driver/link_artifact.h"
#include "driver/module_format.h"
#include "driver/native_programs.h"
#include "driver/output_file.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "ops/op_handles.h"
#include "partition/place.h"
#include "passes/fold/fold_constant.h"
#include "passes/pipeline.h"
#include "plan/join_views.h"
#include "plan/plan_memory.h"
#include "plan/read_program.h"
#include "plan/verify_program.h"
#include "runtime/thread_pool.h"

namespace headrace::driver {

namespace {

int processors_for(int32_t jobs) { return jobs > 0 ? jobs : runtime::num_processors(); }

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
    context_ = make_relay_context(options, keep_note());
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
      PlacedModel model = place_model(std::move(canonical), options_);
      if (const auto& cost = model.placing.decision->cost()) report_.cost_source = cost->source;
      placed_ = std::move(model.placed);
    });
    stage("backends", [&] { compile_backends(); });
    stage("native passes", [&] { run_native_passes(); });
    stage("plan", [&] { plan(); });
    stage("lower", [&] { lower(); });
    stage("emit", [&] { emit(); });
    stage("native code", [&] { generate_code(); });
    LinkedArtifact linked;
    stage("link", [&] { linked = link(code_); });
    report_.manifest = std::move(linked.manifest);
    report_.artifact_bytes = linked.nbytes;
    return std::move(report_);
  }

 private:
  static constexpr int kStages = 9;

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
    note_refused();
    partition::return_to_native(placed_, compiled_.refused);
    drop_refused(compiled_, placed_.regions);
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

  // Notes once for each reason that regions become native.
  void note_refused() {
    std::map<std::pair<std::string, std::string>, std::vector<size_t>> regions;  // by backend and reason
    for (size_t i = 0; i < placed_.regions.size(); ++i) {
      if (compiled_.refused[i]) regions[{placed_.regions[i].backend, compiled_.refused[i]->message}].push_back(i);
    }
    for (const auto& [refusal, indices] : regions) {
      const std::string& name = placed_.regions[indices[0]].name;
      report_.notes.push_back({.reason = compiled_.refused[indices[0]]->code,
                               .pass = "placement",
                               .message = indices.size() == 1
                                              ? fmt::format("{} refused the region '{}', which is native: {}",
                                                            refusal.first, name, refusal.second)
                                              : fmt::format("{} refused {} regions, such as '{}', which are native: {}",
                                                            refusal.first, indices.size(), name, refusal.second)});
    }
  }

  pass::NoteSink keep_note() {
    return [this](const pass::PassNote& note) { report_.notes.push_back(note); };
  }

  void run_native_passes() {
    programs_.push_back({.names = {.inputs = model_.inputs, .outputs = model_.outputs}, .module = placed_.module});
    if (options_.native_forms) {
      for (const partition::Region& region : placed_.regions) programs_.push_back(fallback_of(region, placed_.module));
    }
    placed_.module = {};  // values that the passes replace need no memory any more
    // The native passes fold constants once more, and note what is left then.
    std::erase_if(report_.notes, [](const pass::PassNote& note) { return note.reason == HR_REASON_FOLD_LIMIT; });
    context_.note = pass::each_once(keep_note());
    for_each_program([&](NativeProgram& program) {
      if (program.is_fallback) program.module = run_canonical_passes(std::move(program.module), context_);
      program.module = pass::run_passes(passes::native(machine_of(code_.target)), std::move(program.module), context_);
    });
  }

  void plan() {
    for_each_program([&](NativeProgram& program) {
      program.plan = plan::read_program(program.module, groups_);
      if (program.is_fallback && !program.plan.bounded_outputs.empty())
        throw_user_error("the size of one of its results is data-dependent");
      if (options_.passes.opt_level > 0) plan::join_views(program.plan, groups_);
      plan::plan_memory(program.plan);
      const std::vector<std::string> breaches = plan::find_breaches(program.plan);
      HEADRACE_CHECK(breaches.empty(), "the plan of '{}' is not well-formed: {}", program.names.program,
                     breaches.front());
      check_run_size(plan::arena_bytes(program.plan, {}));
    });
  }

  void lower() {
    KernelLowering lowering(options_, code_);
    for_each_program([&](NativeProgram& program) { lowering.lower(program); });
    for (size_t i = 0; i < placed_.regions.size(); ++i) {
      CompiledRegion& region = compiled_.regions[i];
      if (region.kernel) region.workspace_bytes = lowering.finish(region.kernel, placed_.regions[i].function->span);
    }
  }

  void emit() {
    for (const NativeProgram& program : programs_) {
      artifact::Program& row = emit_program(program, code_);
      if (!program.is_fallback) describe_model(program.plan, row);
    }
    for (size_t i = 0; i < placed_.regions.size(); ++i) emit_region(placed_.regions[i], compiled_.regions[i], code_);
    save_external_modules(code_);
    // The code generator needs memory of its own, and nothing of these.
    programs_.clear();
    groups_ = {};
    placed_ = {};
  }

  // Writes what only the model's own program has.
  void describe_model(const plan::Program& plan, artifact::Program& row) const {
    for (const CompiledRegion& region : compiled_.regions)
      row.memory.workspace_bytes = std::max(row.memory.workspace_bytes, region.workspace_bytes);
    for (const auto& [name, data] : model_.bound) row.bound_params.push_back(bound_param(name, data));
    for (std::vector<artifact::TensorSpec>* specs : {&row.inputs, &row.outputs}) {
      for (artifact::TensorSpec& spec : *specs) name_dimensions(spec);
    }
    row.placement = placed_.placement;
    for (const pass::PassNote& note : report_.notes) row.notes.push_back(to_note(note));
    note_unfused(plan, row.notes);
  }

  // An output may have another rank than the one that the model declares.
  void name_dimensions(artifact::TensorSpec& spec) const {
    const auto names = model_.dims.find(spec.name);
    if (names != model_.dims.end() && names->second.size() == spec.shape.size()) spec.dims = names->second;
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
  std::vector<NativeProgram> programs_;  // the model's own first
  plan::GroupTable groups_;              // shared by all programs
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
