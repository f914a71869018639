#include "lower/loops/reduction.h"

#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

Reduction::Reduction(const FlatStage& stage, const cost::Machine& machine)
    : stage(stage),
      machine(machine),
      accesses(accesses_of(stage.value)),
      lanes(lanes_of(machine, stage.value->dtype)) {}

int64_t Reduction::num_terms() const {
  int64_t count = 1;
  for (const int64_t extent : stage.reduce_extents) count *= std::max<int64_t>(extent, 1);
  return count;
}

std::optional<size_t> Reduction::sharing_axis(const PrimVarNode* mover) const {
  for (size_t i = stage.axes.size(); i-- > 0;) {
    const PrimVarNode* axis = stage.axes[i].get();
    if (axis == mover) continue;
    const bool shares = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return access.index.coefficient(mover) != 0 && access.index.coefficient(axis) == 0 && !access.index.hides(axis);
    });
    if (shares) return i;
  }
  return std::nullopt;
}

PrimExpr Reduction::combined(const PrimExpr& acc, const PrimExpr& term) const {
  const auto* product = term.as<BinaryNode>();
  const bool fma = machine.has_fma && stage.combiner == Combiner::sum && product != nullptr &&
                   product->op == BinaryOp::mul && term->dtype.is_float() && term->dtype.bits() >= 32;
  if (fma) return make_intrinsic(Intrinsic::fma, term->dtype, {product->a, product->b, acc});
  return combine(stage.combiner, acc, term);
}

PrimExpr Reduction::term(const Values& values) const { return substitute(stage.value, values); }

Stmt Reduction::store_result(const PrimExpr& reduced, Values values) const {
  PrimExpr result = reduced;
  if (stage.epilogue) {
    values[stage.reduced.get()] = reduced;
    result = substitute(stage.epilogue, values);
  }
  return make_store(stage.output, result, {substitute(stage.place, values)});
}

Stmt Reduction::reduce_loops(size_t count, size_t unrolled, Values values,
                             const std::function<Stmt(const Values&)>& body, const std::optional<Range>& first) const {
  std::vector<PrimVar> vars;
  for (size_t i = 0; i < count; ++i) {
    vars.push_back(make_prim_var(stage.reduce_axes[i]->name_hint));
    values[stage.reduce_axes[i].get()] = vars.back();
  }
  Stmt result = body(values);
  for (size_t i = count; i-- > 0;) {
    const ForKind kind = i + unrolled >= count ? ForKind::unrolled : ForKind::serial;
    const Range range = i == 0 && first ? *first : Range{make_int(0), stage.reduce_extents[i]};
    result = make_for(vars[i], range.begin, make_int(range.extent), kind, result);
  }
  return result;
}

}  // namespace headrace::lower
