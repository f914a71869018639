// Lays out a function's allocations in a worker's workspace.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "tir/stmt.h"

namespace headrace::codegen {

// Memory is taken as a stack: an allocation inside another's body lies behind it, allocations one after the other share
// their place. A parallel loop's body takes its part from the worker's own block, behind what surrounds the loop.
struct WorkspaceLayout {
  uint64_t size_bytes = 0;                                       // of one worker's block; a multiple of 64
  std::unordered_map<const BufferNode*, uint64_t> offset_bytes;  // multiples of 64
};

WorkspaceLayout layout_workspace(const tir::PrimFuncNode& function);

// Returns the bytes of a buffer of constant shape, dense.
uint64_t size_bytes_of(const BufferNode& buffer);

}  // namespace headrace::codegen
