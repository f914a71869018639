// The layout of a function's workspace: where each allocation of scope `workspace` lies in a worker's block.
//
//   attrs {"tir.workspace" = {"bytes": 448, "offsets": [0, 128, 0]}}
//
// The attribute is made once, when loops are made, and is what code generators, the C writer and the memory plan read.
// It lists the offsets of the buffers in the order in which they are first allocated. Passes keep it: they neither add
// allocations nor move them.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "tir/stmt.h"

namespace headrace::tir {

inline constexpr std::string_view kWorkspace = "tir.workspace";

// The attribute as numbers.
struct WorkspaceLayout {
  uint64_t size_bytes = 0;                                       // size of one worker's block; a multiple of 64
  std::unordered_map<const BufferNode*, uint64_t> offset_bytes;  // multiples of 64
};

// Returns the function with its workspace laid out; the function itself when it carries a layout or allocates nothing
// there. Memory is taken as a stack: an allocation inside another's body lies behind it, allocations one after the
// other share their place. A parallel loop's body takes its part from the worker's own block, behind what surrounds the
// loop.
PrimFunc with_workspace(const PrimFunc& function);

// Returns the layout that the function carries; an empty one where it allocates nothing. UserError when it allocates
// workspace and carries no layout; the attribute must keep the rule of verify.h.
WorkspaceLayout workspace_of(const PrimFuncNode& function);

// Returns what is wrong with the attribute: a form other than above, an offset or a size that is not a multiple of 64,
// a buffer that reaches past the end, two buffers that are allocated together and overlap. Empty when there is none.
std::vector<std::string> breaches_of_workspace(const PrimFuncNode& function);

// Returns the bytes of a buffer of constant shape, dense.
uint64_t size_bytes_of(const BufferNode& buffer);

}  // namespace headrace::tir
