// AnnotateTarget: marks which calls each compiler of a list supports, by compiler_begin and compiler_end around every
// one.
//
//   nn.relu(%x)   ->   annotation.compiler_end(
//                        nn.relu(annotation.compiler_begin(%x, compiler="gpu")), compiler="gpu")
//
// A call goes to the first compiler of the list that supports it: an op is supported when the function under its
// attribute target.<compiler> says so of the call, or, without that attribute, when the backend of that name
// (partition/backend.h) says so; a composite function (attribute Composite) when the part of its name
// before the first '.' is the compiler's. All other calls go to "default", which is not a compiler: PartitionGraph
// leaves them where they are. Tuples, items of tuples and references go where all their inputs go, else to "default";
// calls without arguments, empty tuples, variables and constants are inputs. Annotations that are there already stay,
// but for those of "default"; so A and then B gives what [A, B] gives. Functions that passes do not enter stay as they
// are.
//
// Without compilers nothing changes. Run MergeComposite before, as it makes the composite functions, and
// MergeCompilerRegions or PartitionGraph after. Preserves results to the last bit. Needs types.
#pragma once

#include "object/function.h"
#include "partition/verdict.h"
#include "relay/expr.h"

namespace headrace::partition {

struct AnnotateOptions {
  std::vector<std::string> targets;  // the compilers, in the order of their priority
  // Whether tuples, items of tuples and references have annotations, too. Otherwise only what enters them is closed.
  bool include_non_call_ops = true;
};

IRModule annotate_target(const IRModule& module, const AnnotateOptions& options);

// Returns the name of the op attribute that says which calls `compiler` supports: a function of the call, or a
// TargetCheckFn of C++. UserError for a compiler without a name and for "default".
std::string target_attr(const std::string& compiler);

// A check written in C++, which may return a bool or a Verdict.
using TargetCheckFn = std::function<CheckAnswer(const relay::CallNode& call)>;
void set_target_check(const Op& op, const std::string& compiler, const TargetCheckFn& check);

// Returns whether `compiler` supports a typed call of an op or of a composite function, and why not where something
// says so. Effects are supported by none. UserError that names the op when the value of the attribute is not a
// function, or gives neither a bool nor a string, which says why not.
Verdict support_of(const relay::CallNode& call, const std::string& compiler);

}  // namespace headrace::partition
