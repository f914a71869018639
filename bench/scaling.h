// How the time of what walks programs grows with the program.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

// The largest ratio, for a program twice as large, that counts as linear: 2 is linear, and cache effects add something.
constexpr double kLinearRatio = 2.6;

struct ScalingOptions {
  std::string shape, work;  // those whose name contains this
  double size = 1;          // times the size of each shape
  int rounds = 20;          // at most; three where the times are linear
  int limit_s = 60;         // processor time of one kind of work over one shape
};

// For every shape of scaling_shapes.h, at its size and twice that, every kind of work: parse, print, compare, hash,
// JSON, visit, infer, interpret, each pass. A pair is measured in a process of its own, so that one that hangs or
// crashes is a row too. Each row: processor seconds of the larger program (the best of some runs) and bytes it
// allocated, and both by the smaller's: bytes are the same in every run, seconds see work that allocates nothing.
// `note` says what went wrong.
tools::Report measure_scaling(const ScalingOptions& options);

}  // namespace headrace::bench
