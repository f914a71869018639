#include "ir/map_operands.h"
#include "ir/prim_expr.h"

namespace headrace {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

namespace {

// A part that stands in several places is rebuilt once, and stays shared.
struct Substitution {
  const Values& values;
  std::unordered_map<const PrimExprNode*, PrimExpr> done;
};

// Depth is that of one scalar expression, which a kernel's author or a shape bounds; it does not grow with the model.
PrimExpr replace(const PrimExpr& e, Substitution& state) {
  if (const auto* var = e.as<PrimVarNode>()) {
    auto it = state.values.find(var);
    return it == state.values.end() ? e : it->second;
  }
  if (e.is<IntImmNode>() || e.is<FloatImmNode>()) return e;
  if (auto it = state.done.find(e.get()); it != state.done.end()) return it->second;
  PrimExpr result = map_operands(e, [&](const PrimExpr& operand) { return replace(operand, state); });
  state.done[e.get()] = result;
  return result;
}

}  // namespace

PrimExpr substitute(const PrimExpr& e, const Values& values) {
  Substitution state{values, {}};
  return replace(e, state);
}

}  // namespace headrace
