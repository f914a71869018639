// Schedules: from what is computed to loops. One generator for all ops: vectors along the innermost axis (or along the
// innermost reduction), a register tile over it and one more axis, threads over the outermost.
#pragma once

#include "tir/compute.h"

namespace headrace::lower {

// What a schedule may count on.
struct ScheduleOptions {
  int vector_bits = 256;
  int vector_registers = 16;
  bool has_fma = true;
};

// The loops of `compute`, whose shapes are all static, as a function of its inputs, then its outputs: each a line of
// elements (dense, row-major). Outputs must not overlap inputs. Each sum is accumulated in one fixed order, for any
// number of threads.
tir::PrimFunc schedule(const tir::Compute& compute, const std::string& symbol, const ScheduleOptions& options);

}  // namespace headrace::lower
