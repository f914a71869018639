#include "lower/schedule.h"

#include "lower/stage_loops.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

PrimFunc schedule(const Compute& compute, const std::string& symbol, const ScheduleOptions& options) {
  FlatBuffers buffers;
  std::vector<Stmt> stages;
  for (const ComputeStage& stage : compute.stages) {
    const FlatStage flat = flatten(stage, buffers);
    if (std::find(flat.extents.begin(), flat.extents.end(), 0) != flat.extents.end()) continue;
    stages.push_back(stage.is_check()                  ? check_loops(flat, stage.message)
                     : flat.combiner == Combiner::none ? map_loops(flat, options)
                                                       : reduction_loops(flat, options));
  }
  Stmt body = make_seq(stages);
  std::vector<Buffer> made = compute.outputs;
  for (size_t i = compute.stages.size(); i-- > 0;) {
    const Buffer& buffer = compute.stages[i].output;
    if (compute.stages[i].is_check() || std::find(made.begin(), made.end(), buffer) != made.end()) continue;
    made.push_back(buffer);
    body = make_allocate(buffers.line(buffer), Scope::workspace, body);
  }
  Array<Buffer> params;
  for (const Buffer& input : compute.inputs) params.push_back(buffers.line(input));
  for (const Buffer& output : compute.outputs) params.push_back(buffers.line(output));
  const PrimFunc function = make_prim_func(symbol, params, static_cast<int64_t>(compute.outputs.size()), body);
  return copy_with(*function, [](PrimFuncNode& copy) { copy.attrs.set("tir.noalias", Value(true)); });
}

}  // namespace headrace::lower
