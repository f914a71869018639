// The compute form as the plainest loops: what it means. lower/schedule.h makes the fast ones.
//
//   y[i, j] = sum over k of a[i, k] * b[k, j]
//   -> for i in serial(4) { for j in serial(5) {
//        y[i, j] = 0f;
//        for k in serial(6) { y[i, j] = y[i, j] + a[i, k] * b[k, j]; }
//      } }
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

// A function of the inputs, then the outputs, with the shapes that these have; one nest of serial loops a stage, and an
// allocation for each other buffer. UserError: the form breaks a rule (verify_compute.h), or such a buffer has a
// symbolic shape.
PrimFunc plain_loops(const Compute& compute, const std::string& symbol);

// The nest of one stage, whose parts fit each other.
Stmt plain_loops(const ComputeStage& stage);

}  // namespace headrace::tir
