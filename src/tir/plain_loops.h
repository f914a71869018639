// Turns the compute form into the plainest loops, which define its meaning. lower/loops/schedule.h makes the fast ones.
//
//   y[i, j] = sum over k of a[i, k] * b[k, j]
//   -> for i in serial(4) { for j in serial(5) {
//        y[i, j] = 0f;
//        for k in serial(6) { y[i, j] = y[i, j] + a[i, k] * b[k, j]; }
//      } }
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

// Returns a function of the inputs, then the outputs, with their shapes. It has one nest of serial loops for each
// stage, and an allocation for each other buffer. UserError: the form breaks a rule (verify_compute.h), or an allocated
// buffer has a symbolic shape.
PrimFunc plain_loops(const Compute& compute, const std::string& symbol);

// Returns the nest of one well-formed stage.
Stmt plain_loops(const ComputeStage& stage);

}  // namespace headrace::tir
