// Schedules turn a compute form into loops. One generator serves all ops: vectors along the innermost axis (or along
// the innermost reduction), a register tile over it and one more axis, threads over the outermost axes.
#pragma once

#include "cost/machine.h"
#include "tir/compute.h"

namespace headrace::lower {

// Returns the loops of `compute`, whose shapes are all static, as a function of its inputs, then its outputs; each is a
// line of elements (dense, row-major). Outputs must not overlap inputs. Each sum is accumulated in one fixed order, for
// any number of threads.
tir::PrimFunc schedule(const tir::Compute& compute, const std::string& symbol, const cost::Machine& machine);

}  // namespace headrace::lower
