// Memory that is never freed, because a function keeps an array whose memory should have ended with the call.
//
// The owners of the memory of tensors (the CPU's DeviceApi, tensors of DLPack, AlignedBuffer of the runtime) ask
// `holds_kept_memory` before they free. Programs that follow the rules keep nothing, and pay for one atomic load.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>

namespace headrace {

// Keeps the memory in which the first element of a tensor of the CPU lies. A tensor without elements has none. Cannot
// be undone, since views of the array may be anywhere.
void keep_memory_of(const DLTensor& tensor);

// Returns whether some of this memory is kept. Its owner then gives it up without freeing it.
bool holds_kept_memory(const void* begin, size_t size_bytes) noexcept;

// Returns whether some of the memory of a dense tensor is kept.
bool holds_kept_memory(const DLTensor& tensor) noexcept;

}  // namespace headrace
