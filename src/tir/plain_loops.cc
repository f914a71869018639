#include "tir/plain_loops.h"

#include <unordered_set>

#include "tir/verify_compute.h"

namespace headrace::tir {

namespace {

Stmt nest(const std::vector<PrimVar>& axes, const std::vector<PrimExpr>& extents, Stmt body) {
  for (size_t i = axes.size(); i-- > 0;)
    body = make_for(axes[i], make_int(0), extents[i], ForKind::serial, std::move(body));
  return body;
}

// Returns the loops that combine into the element `at` of `total`.
Stmt reduction(const ComputeStage& stage, const Buffer& total, const Array<PrimExpr>& at) {
  const PrimExpr combined = combine(stage.combiner, make_load(total, at), stage.value);
  return make_seq({make_store(total, stage.init, at),
                   nest(stage.reduce_axes, stage.reduce_extents, make_store(total, combined, at))});
}

Stmt element(const ComputeStage& stage) {
  if (stage.is_check()) return make_assert(stage.value, stage.message);
  const Array<PrimExpr> at = stage.is_partial() ? Array<PrimExpr>(stage.place) : Array<PrimVar>(stage.axes);
  if (stage.combiner == Combiner::none) return make_store(stage.output, stage.value, at);
  if (!stage.epilogue) return reduction(stage, stage.output, at);
  const Buffer total = make_buffer("total", stage.value->dtype, {make_int(1)});
  const Array<PrimExpr> first{make_int(0)};
  const Stmt last = make_let(stage.reduced, make_load(total, first), make_store(stage.output, stage.epilogue, at));
  return make_allocate(total, Scope::registers, make_seq({reduction(stage, total, first), last}));
}

}  // namespace

Stmt plain_loops(const ComputeStage& stage) { return nest(stage.axes, stage.axis_extents(), element(stage)); }

PrimFunc plain_loops(const Compute& compute, const std::string& symbol) {
  verify(compute);
  Array<Buffer> params(compute.inputs);
  for (const Buffer& output : compute.outputs) params.push_back(output);
  std::unordered_set<const BufferNode*> made;
  for (const Buffer& param : params) made.insert(param.get());
  std::vector<Stmt> nests;
  for (const ComputeStage& stage : compute.stages) nests.push_back(plain_loops(stage));
  Stmt body = make_seq(nests);
  for (size_t i = compute.stages.size(); i-- > 0;) {
    const ComputeStage& stage = compute.stages[i];
    if (stage.is_check() || !made.insert(stage.output.get()).second) continue;
    if (!as_shape(stage.output->shape))
      throw_user_error("'{}' is kept between two stages and has a symbolic shape: only outputs may",
                       stage.output->name);
    body = make_allocate(stage.output, Scope::workspace, body);
  }
  return make_prim_func(symbol, params, static_cast<int64_t>(compute.outputs.size()), body);
}

}  // namespace headrace::tir
