// What a user gives for an op, as the rules of the op: a compute form or a PrimFunc, fitted to one call.
#pragma once

#include "base/expected.h"
#include "lower/kernel_rule.h"

namespace headrace::lower {

// What `rule` gives for this call, with axes and buffers of its own, so that two calls never share one. The rule gets
// buffers that are all different. UserError at the call: the form breaks a rule (tir/verify_compute.h), reads other
// tensors than the inputs, gives other results than the op's types say, or surely indexes outside a tensor.
tir::Compute fit_compute(const ComputeRuleFn& rule, const RuleInput& input);

// How a compute form may fuse, as its loads tell; the sentence says why, where it is opaque.
//   elementwise: one stage whose loads are at the stage's own axes; broadcast: as numpy broadcasts; injective: each
//   input is read at one index, or the value tells where or of what size it is; reduction: every element that is read
//   is read once; anchor: other reductions, and stages that read an input at several indices.
std::pair<ops::FusionKind, std::string> fusion_of(const tir::Compute& form);
// The widest kind among the form's stages, also where no group takes it.
ops::FusionKind widest_stage(const tir::Compute& form);

// UserError at the call when the parameters of `function` (inputs, then outputs) do not have the tensors' dtypes and
// shapes; symbols in them take the call's sizes.
void check_params(const tir::PrimFunc& function, const RuleInput& input);

// The compute form of `function` for this call, or the reason why its loops are none. Parameters and indices as above.
Expected<tir::Compute> raise_for(const tir::PrimFunc& function, const RuleInput& input);

// The loops of `function` as they are, on the tensors of the call. Parameters as above.
tir::Stmt loops_for(const tir::PrimFunc& function, const KernelInput& input);

}  // namespace headrace::lower
