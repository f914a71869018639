// TensorPool: tensors of one type whose memory is used again once the last reference to one has gone.
#pragma once

#include <memory>

#include "artifact/tensor_spec.h"
#include "tensor/ndarray.h"

namespace headrace::executors::pipeline {

// Any thread may take a tensor, and drop one; tensors outlive the pool. Memory that comes back is kept for the next
// tensor, up to `most_idle` of them, so that a steady stream of requests asks the system for none. That of a device is
// not kept: its tensors stay in the slots of a pipeline.
class TensorPool {
 public:
  // Makes the memory of `first` tensors at once, for a type on the CPU. UserError without memory.
  TensorPool(const artifact::TensorSpec& spec, size_t first, size_t most_idle);

  // Returns a tensor on the type's device with memory of undefined content, 64-byte aligned. UserError without memory.
  NDArray take();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace headrace::executors::pipeline
