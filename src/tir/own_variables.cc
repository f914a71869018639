#include "tir/own_variables.h"

#include "tir/rewrite.h"

namespace headrace::tir {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

PrimExpr replace_variables(const PrimExpr& e, const Values& values) {
  if (values.empty()) return e;
  return rewrite(e, [&](const PrimExpr& inner) {
    const auto* var = inner.as<PrimVarNode>();
    const auto found = var == nullptr ? values.end() : values.find(var);
    return found == values.end() ? inner : found->second;
  });
}

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
  for (PrimExpr& index : stage.place) index = replace_variables(index, values);
  stage.value = replace_variables(stage.value, values);
  if (stage.epilogue) stage.epilogue = replace_variables(stage.epilogue, values);
}

Compute with_own_variables(Compute compute) {
  for (ComputeStage& stage : compute.stages) renew(stage);
  return compute;
}

}  // namespace headrace::tir
