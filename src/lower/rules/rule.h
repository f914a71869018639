// What the rule files share.
#pragma once

#include "lower/kernel_rule.h"
#include "lower/rule_families.h"
#include "ops/axis.h"

namespace headrace::lower {

using tir::Combiner;
using tir::Compute;
using tir::ComputeStage;

void set_rule(std::string_view op, ComputeRuleFn rule);
void set_kernel_rule(std::string_view op, KernelRuleFn rule);

// The result's element `index` as `element` gives it in the wide dtype, rounded to the result's own.
Compute map_rule(const RuleInput& input, const std::function<PrimExpr(const Index&)>& element);

// A buffer for a stage between.
Buffer make_stage_buffer(const char* name, DataType dtype, const std::vector<PrimExpr>& shape);

// Makes `finish(combined value)` the stage's result, rounded to its output's dtype.
ComputeStage finished(ComputeStage stage, const std::function<PrimExpr(const PrimExpr&)>& finish);
// The same with the combined value itself.
ComputeStage rounded(ComputeStage stage);

// Arithmetic as the rules write it.
inline constexpr DataType kReal = DataType::float_(64);  // of coordinates between elements
PrimExpr real(double value);
PrimExpr call(Intrinsic intrinsic, const PrimExpr& x);
PrimExpr divide(const PrimExpr& a, const PrimExpr& b);
PrimExpr negative(const PrimExpr& x);
PrimExpr both(const PrimExpr& a, const PrimExpr& b);  // of bools
PrimExpr least(const PrimExpr& a, const PrimExpr& b);
PrimExpr most(const PrimExpr& a, const PrimExpr& b);

// `number` in the dtype of `like`.
PrimExpr number_like(double number, const PrimExpr& like);
// At least `low`, at most `high`.
PrimExpr clamp(const PrimExpr& value, const PrimExpr& low, const PrimExpr& high);
// low <= value and value < high.
PrimExpr is_within(const PrimExpr& value, const PrimExpr& low, const PrimExpr& high);

// The integer that a dimension is; UserError at the call when it is symbolic.
int64_t static_dim(const RuleInput& input, const PrimExpr& dim);
Shape static_shape(const RuleInput& input, const Array<PrimExpr>& dims);
// A UserError placed at the call, prefixed with the op's name.
[[noreturn]] void fail_rule(const RuleInput& input, const std::string& message);
// Argument `i` of the call when it is a constant list of integers.
std::optional<std::vector<int64_t>> constant_ints(const RuleInput& input, size_t i);

using ops::normal_axis;

}  // namespace headrace::lower
