// Tensors between guards: a page after the last element that ends the process when it is touched, and a pattern before
// the first and up to the page. Inner header of this room.
#pragma once

#include "tensor/ndarray.h"

namespace headrace::conformance {

class GuardedTensor {
 public:
  // Takes memory that ends where a guard page begins; aligned to the element only. UserError without memory.
  GuardedTensor(const Shape& shape, DataType dtype);
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;
  ~GuardedTensor();

  void fill(uint8_t byte);
  void copy_from(const NDArray& data);
  NDArray copy() const;
  const DLTensor& tensor() const { return tensor_; }
  // Returns whether the bytes before the first element are as they were made.
  bool is_fence_whole() const;

 private:
  size_t nbytes_ = 0, mapped_nbytes_ = 0;
  std::byte* mapped_ = nullptr;
  std::byte* data_ = nullptr;
  Shape shape_, strides_;
  DLTensor tensor_{};
};

}  // namespace headrace::conformance
