#include "lower/loops/schedule.h"

#include "lower/loops/group_loops.h"
#include "lower/loops/stage_loops.h"
#include "tir/workspace.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

Stmt stage_loops(const FlatStage& stage, const cost::Machine& machine) {
  if (std::find(stage.extents.begin(), stage.extents.end(), 0) != stage.extents.end()) return make_seq({});
  return stage.combiner == Combiner::none ? map_loops(stage, machine) : reduction_loops(stage, machine);
}

PrimFunc schedule(const Compute& compute, const std::string& symbol, const cost::Machine& machine) {
  FlatBuffers buffers;
  const StageUses uses(compute);
  std::vector<Stmt> stages;
  std::unordered_set<const BufferNode*> made;  // allocated, or a parameter
  for (const Buffer& output : compute.outputs) made.insert(output.get());
  for (size_t i = 0; i < compute.stages.size();) {
    const ComputeStage& stage = compute.stages[i];
    const StageGroup group = find_group(compute, uses, i, machine);
    stages.push_back(group.depth > 0    ? group_loops(compute, group, buffers, machine)
                     : stage.is_check() ? check_loops(flatten(stage, buffers), stage.message)
                                        : stage_loops(flatten(stage, buffers), machine));
    for (const Buffer& buffer : group.local) made.insert(buffer.get());
    i = group.end;
  }
  Stmt body = make_seq(stages);
  for (size_t i = compute.stages.size(); i-- > 0;) {
    const Buffer& buffer = compute.stages[i].output;
    if (compute.stages[i].is_check() || !made.insert(buffer.get()).second) continue;
    body = make_allocate(buffers.line(buffer), Scope::workspace, body);
  }
  Array<Buffer> params;
  for (const Buffer& input : compute.inputs) params.push_back(buffers.line(input));
  for (const Buffer& output : compute.outputs) params.push_back(buffers.line(output));
  const PrimFunc function = make_prim_func(symbol, params, static_cast<int64_t>(compute.outputs.size()), body);
  return with_workspace(copy_with(*function, [](PrimFuncNode& copy) { copy.attrs.set("tir.noalias", Value(true)); }));
}

}  // namespace headrace::lower
