#include "driver/emit_programs.h"

#include <algorithm>

#include "artifact/trailer.h"
#include "lower/user_ops/user_op.h"
#include "ops/call_fusion.h"
#include "relay/text/print.h"

namespace headrace::driver {

artifact::Program& emit_program(const NativeProgram& source, CompiledCode& code) {
  artifact::Program program = plan::emit_graph_program(source.plan, source.names, code.weights);
  if (source.is_fallback) program.region = program.name;
  program.memory.workspace_bytes = source.workspace_bytes;
  program.target = {code.target.triple, code.target.cpu, code.target.enabled};
  program.compiler = HEADRACE_VERSION;
  return code.programs.emplace_back(std::move(program));
}

void emit_region(const partition::Region& region, const CompiledRegion& compiled, CompiledCode& code) {
  std::vector<NDArray> weights;
  IRModule module = make_module();
  module->add_function(make_global_var(region.name), region.function);
  const bool has_fallback = std::any_of(code.programs.begin(), code.programs.end(),
                                        [&](const auto& program) { return program.name == region.name; });
  artifact::Region row{.name = region.name,
                       .backend = region.backend,
                       .symbol = compiled.symbol,
                       .fallback = has_fallback ? region.name : "",
                       .body = relay::print_module(module, {.weights = &weights}),
                       .body_weights = {}};
  for (const NDArray& weight : weights) row.body_weights.push_back(code.weights.add(weight));
  code.regions.push_back(std::move(row));
  code.region_modules.push_back(compiled.module);
}

artifact::CompileNote to_note(const pass::PassNote& note) {
  return {.pass = note.pass, .op = to_string(note.span), .reason = note.reason, .message = note.message};
}

artifact::BoundParam bound_param(const std::string& name, const NDArray& data) {
  const NDArray dense = data.to_dense();
  return {.spec = {.name = name, .dtype = dense.dtype(), .shape = dense.shape()},
          .hash = artifact::content_hash({dense.data<const uint8_t>(), dense.size_bytes()})};
}

void note_unfused(const plan::Program& plan, std::vector<artifact::CompileNote>& notes) {
  for (const plan::Step& step : plan.steps) {
    const auto* call = step.function ? plan.functions[*step.function].second->body.as<relay::CallNode>() : nullptr;
    const bool is_users = call != nullptr && call->as_op() != nullptr && lower::is_user_op(call->op.cast<OpNode>());
    const std::string why = is_users ? ops::why_opaque(*call) : "";
    if (why.empty()) continue;
    notes.push_back({.pass = "FuseOps", .op = to_string(step.span), .reason = HR_REASON_FUSE_PATTERN, .message = why});
  }
}

}  // namespace headrace::driver
