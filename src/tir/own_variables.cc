#include "tir/own_variables.h"

namespace headrace::tir {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

static void renew(PrimVar& var, Values& values) {
  PrimVar made = make_prim_var(var->name_hint, var->dtype);
  values[var.get()] = made;
  var = std::move(made);
}

static void renew(ComputeStage& stage) {
  Values values;
  for (PrimVar& axis : stage.axes) renew(axis, values);
  for (PrimVar& axis : stage.reduce_axes) renew(axis, values);
  if (stage.reduced) renew(stage.reduced, values);
  for (PrimExpr& index : stage.place) index = substitute(index, values);
  stage.value = substitute(stage.value, values);
  if (stage.epilogue) stage.epilogue = substitute(stage.epilogue, values);
  stage.windows = nullptr;  // it names the old variables
}

Compute with_own_variables(Compute compute) {
  for (ComputeStage& stage : compute.stages) renew(stage);
  return compute;
}

}  // namespace headrace::tir
