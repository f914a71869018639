#include "lower/loops/guard_range.h"

#include "lower/stages/make_stage.h"

namespace headrace::lower {

namespace {

// Returns the terms of a conjunction, left to right.
std::vector<PrimExpr> terms_of(const PrimExpr& condition) {
  std::vector<PrimExpr> terms, open{condition};
  while (!open.empty()) {
    const PrimExpr term = open.back();
    open.pop_back();
    const auto* both = term.as<BinaryNode>();
    if (both != nullptr && both->op == BinaryOp::logical_and) {
      open.push_back(both->b);
      open.push_back(both->a);
    } else {
      terms.push_back(term);
    }
  }
  return terms;
}

// The offsets that a sum takes without the last axis.
struct OffsetRange {
  int64_t low = 0, high = 0;
};

std::optional<OffsetRange> range_without_last(const FlatStage& stage, const Affine& sum) {
  OffsetRange range{sum.constant, sum.constant};
  for (const auto& [term, coefficient] : sum.terms) {
    if (term == PrimExpr(stage.axes.back())) continue;
    const auto axis = std::find_if(stage.axes.begin(), stage.axes.end(),
                                   [&, &term = term](const PrimVar& it) { return PrimExpr(it) == term; });
    if (axis == stage.axes.end()) return std::nullopt;
    const int64_t most = coefficient * (stage.extents[static_cast<size_t>(axis - stage.axes.begin())] - 1);
    (most < 0 ? range.low : range.high) += most;
  }
  return range;
}

// Narrows the interior by one condition; false when it is not of the known form.
bool narrow(const FlatStage& stage, const PrimExpr& condition, Interior& interior, std::vector<PrimExpr>& others) {
  const auto* comparison = condition.as<BinaryNode>();
  if (comparison == nullptr) return false;
  const Affine sum = to_affine(comparison->a, {});
  const PrimVarNode* last = stage.axes.back().get();
  const int64_t step = sum.coefficient(last);
  if (step == 0 && !sum.hides(last)) {
    others.push_back(condition);
    return true;
  }
  const auto limit = as_int(comparison->b);
  const std::optional<OffsetRange> rest = range_without_last(stage, sum);
  if (!limit || !rest || step <= 0) return false;
  // The smallest x with step * x >= distance.
  const auto first_at = [&](int64_t distance) { return distance <= 0 ? 0 : (distance + step - 1) / step; };
  if (comparison->op == BinaryOp::ge) {
    interior.begin = std::max(interior.begin, first_at(*limit - rest->low));
  } else if (comparison->op == BinaryOp::lt) {
    interior.end = std::min(interior.end, first_at(*limit - rest->high));
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<Interior> find_interior(const FlatStage& stage, int64_t least) {
  const auto* guard = stage.value.as<IntrinsicCallNode>();
  if (guard == nullptr || guard->intrinsic != Intrinsic::if_then_else || stage.axes.empty()) return std::nullopt;
  Interior interior{.begin = 0, .end = stage.extents.back(), .value = {}};
  std::vector<PrimExpr> others;
  for (const PrimExpr& condition : terms_of(guard->args[0])) {
    if (!narrow(stage, condition, interior, others)) return std::nullopt;
  }
  if (interior.end - interior.begin < least) return std::nullopt;
  interior.value = guarded(all_of(others), guard->args[1], guard->args[2]);
  return interior;
}

}  // namespace headrace::lower
