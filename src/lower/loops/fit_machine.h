// Fits a kernel that is written by hand to the machine: which of its loops run on several threads, and whether a
// multiply-add is one instruction.
#pragma once

#include <unordered_map>

#include "cost/machine.h"
#include "tir/stmt.h"

namespace headrace::lower {

// The work of parallel loops, by their variables, in units of the time that one element takes: the elements that all
// iterations touch; a vector of multiply-adds counts as one.
using LoopWork = std::unordered_map<const PrimVarNode*, int64_t>;

// Makes the parallel loops of `body` serial whose noted work is not worth several threads on the machine; loops without
// a note stay as they are. Where the machine has no multiply-add, fma(a, b, c) becomes a * b + c, which rounds twice.
tir::Stmt fit_machine(const tir::Stmt& body, const LoopWork& work, const cost::Machine& machine);

}  // namespace headrace::lower
