// Fits what a user provides for an op, a compute form or a PrimFunc, to one call.
#pragma once

#include "base/expected.h"
#include "lower/kernel_rule.h"

namespace headrace::lower {

// Returns the compute form that `rule` gives for this call, with axes and buffers of its own, so that two calls never
// share one. The rule gets buffers that are all different. UserError at the call: the form breaks a rule
// (tir/verify_compute.h), reads tensors other than the inputs, gives results of other types than the op's, or certainly
// indexes outside a tensor.
tir::Compute fit_compute(const ComputeRuleFn& rule, const RuleInput& input);

// Returns how a compute form fuses, derived from its loads, and a sentence with the reason when it is opaque.
// elementwise: one stage whose loads are at the stage's own axes; broadcast: as numpy broadcasts; injective: each input
// is read at one index, or the value depends on an index or a size; reduction: every element that is read is read once;
// anchor: other reductions, and stages that read an input at several indices.
std::pair<ops::FusionKind, std::string> fusion_of(const tir::Compute& form);
// Returns the widest kind among the form's stages, also where no group takes it.
ops::FusionKind widest_stage(const tir::Compute& form);

// Throws a UserError at the call when the parameters of `function` (inputs, then outputs) do not have the tensors'
// dtypes and shapes; symbols in them take the call's sizes.
void check_params(const tir::PrimFunc& function, const RuleInput& input);

// Returns the compute form of `function` for this call, or the reason why its loops have none. Parameters and indices
// are as for fit_compute.
Expected<tir::Compute> raise_for(const tir::PrimFunc& function, const RuleInput& input);

// Returns the loops of `function` unchanged, on the tensors of the call. Parameters are as for fit_compute.
tir::Stmt loops_for(const tir::PrimFunc& function, const KernelInput& input);

}  // namespace headrace::lower
