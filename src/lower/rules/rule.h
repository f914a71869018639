// Helpers of all rule files: registration, stages, arithmetic, errors.
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

// Makes the compute form of an elementwise result: `element` computes the element at an index in the wide dtype, and
// the form rounds it to the result's dtype.
Compute map_rule(const RuleInput& input, const std::function<PrimExpr(const Index&)>& element);

// Makes `finish(combined value)` the stage's result, rounded to its output's dtype.
ComputeStage finished(ComputeStage stage, const std::function<PrimExpr(const PrimExpr&)>& finish);
// Makes the combined value the stage's result, rounded to its output's dtype.
ComputeStage rounded(ComputeStage stage);

// Shorthands for arithmetic in rules.
inline constexpr DataType kReal = DataType::float_(64);  // the dtype of fractional coordinates
PrimExpr real(double value);
PrimExpr call(Intrinsic intrinsic, const PrimExpr& x);
PrimExpr divide(const PrimExpr& a, const PrimExpr& b);
PrimExpr negative(const PrimExpr& x);
PrimExpr both(const PrimExpr& a, const PrimExpr& b);  // logical and
PrimExpr least(const PrimExpr& a, const PrimExpr& b);
PrimExpr most(const PrimExpr& a, const PrimExpr& b);

// Returns x where it is positive, else x * slope.
PrimExpr rectified(const PrimExpr& x, const PrimExpr& slope);

// Returns `number` in the dtype of `like`.
PrimExpr number_like(double number, const PrimExpr& like);
// Returns min(max(value, low), high).
PrimExpr clamp(const PrimExpr& value, const PrimExpr& low, const PrimExpr& high);

// Returns the value of a dimension. Throws UserError at the call if it is symbolic.
int64_t static_dim(const RuleInput& input, const PrimExpr& dim);
Shape static_shape(const RuleInput& input, const Array<PrimExpr>& dims);
// Throws a UserError at the call, prefixed with the op's name.
[[noreturn]] void fail_rule(const RuleInput& input, const std::string& message);
// Returns argument `i` of the call if it is a constant list of integers.
std::optional<std::vector<int64_t>> constant_ints(const RuleInput& input, size_t i);

using ops::normal_axis;

}  // namespace headrace::lower
