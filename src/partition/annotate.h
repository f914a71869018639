// AnnotateTarget: marks which calls each compiler of a list supports, by compiler_begin and compiler_end around every
// one.
//
//   nn.relu(%x)   ->   annotation.compiler_end(
//                        nn.relu(annotation.compiler_begin(%x, compiler="gpu")), compiler="gpu")
//
// A call goes to the first compiler of the list that takes it (partition/support.h). All other calls go to "default",
// which is not a compiler: PartitionGraph leaves them where they are. Tuples, items of tuples and references go where
// all their inputs go, else to "default"; calls without arguments, empty tuples, variables and constants are inputs.
// Annotations that are there already stay, but for those of "default"; so A and then B gives what [A, B] gives.
// Functions that passes do not enter stay as they are.
//
// Without compilers nothing changes. Run MergeComposite before, as it makes the composite functions, and
// MergeCompilerRegions or PartitionGraph after. Preserves results to the last bit. Needs types.
#pragma once

#include <string>
#include <vector>

#include "relay/expr.h"

namespace headrace::partition {

struct AnnotateOptions {
  std::vector<std::string> targets;  // the compilers, in the order of their priority
  // Whether tuples, items of tuples and references have annotations, too. Otherwise only what enters them is closed.
  bool include_non_call_ops = true;
};

IRModule annotate_target(const IRModule& module, const AnnotateOptions& options);

}  // namespace headrace::partition
