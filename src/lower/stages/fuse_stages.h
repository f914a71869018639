// Joins the stages of a group of ops: a value that need not be stored is computed where it is read.
//
//   a[i] = x[i] + 1;  b[i] = exp(a[i])                     ->  b[i] = exp(x[i] + 1)
//   c[i] = sum_k x[i, k] * w[k];  d[i] = max(c[i], 0)      ->  d[i] = max(sum_k x[i, k] * w[k], 0)
//
// Preserves results to the last bit: expressions move, but none is changed.
#pragma once

#include "tir/compute.h"

namespace headrace::lower {

tir::Compute fuse_stages(tir::Compute compute);

}  // namespace headrace::lower
