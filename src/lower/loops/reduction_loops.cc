#include "lower/loops/reduction.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

// Computes one result after the other.
static Stmt reduce_one_by_one(const Reduction& reduction, bool parallel) {
  const FlatStage& stage = reduction.stage;
  std::vector<Loop> loops;
  for (size_t i = 0; i < stage.axes.size(); ++i) loops.push_back({stage.axes[i], stage.extents[i]});
  return nest(loops, parallel, {}, [&](const Values& values) {
    Buffer acc = make_buffer("acc", stage.value->dtype, to_dims({1}));
    const Array<PrimExpr> at{make_int(0)};
    const Stmt sum = reduction.reduce_loops(stage.reduce_axes.size(), 0, values, [&](const Values& inner) {
      return make_store(acc, reduction.combined(make_load(acc, at), reduction.term(inner)), at);
    });
    const Stmt store = reduction.store_result(make_load(acc, at), values);
    return make_allocate(acc, Scope::registers, make_seq({make_store(acc, stage.init, at), sum, store}));
  });
}

Stmt reduction_loops(const FlatStage& stage, const cost::Machine& machine) {
  const Reduction reduction(stage, machine);
  const bool across = can_reduce_across(reduction), along = can_reduce_along(reduction);
  const bool parallel = is_worth_threads(stage, across || along, machine);
  if (across) return reduce_across(reduction, parallel);
  return along ? reduce_along(reduction, parallel) : reduce_one_by_one(reduction, parallel);
}

}  // namespace headrace::lower
