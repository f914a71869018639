// Decides which loops of a kernel that is written by hand run on several threads.
#pragma once

#include <unordered_map>

#include "cost/machine.h"
#include "tir/stmt.h"

namespace headrace::lower {

// The work of parallel loops, by their variables: the number of elements that all iterations touch.
using LoopWork = std::unordered_map<const PrimVarNode*, int64_t>;

// Makes the parallel loops of `body` serial whose noted work is not worth several threads on the machine. Loops without
// a note stay as they are.
tir::Stmt choose_threads(const tir::Stmt& body, const LoopWork& work, const cost::Machine& machine);

}  // namespace headrace::lower
