#include "conformance/guarded_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "tensor/strides.h"

namespace headrace::conformance {

namespace {

constexpr auto kFence = std::byte{0xA5};
constexpr size_t kFenceBytes = 256;

}  // namespace

GuardedTensor::GuardedTensor(const Shape& shape, DataType dtype) : shape_(shape), strides_(dense_strides(shape)) {
  nbytes_ = static_cast<size_t>(num_elements(shape)) * dtype.bytes();
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t used = (nbytes_ + kFenceBytes + page - 1) / page * page;
  mapped_nbytes_ = used + page;
  void* memory = ::mmap(nullptr, mapped_nbytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_user_error("there is no memory for a tensor of {} bytes", nbytes_);
  mapped_ = static_cast<std::byte*>(memory);
  if (::mprotect(mapped_ + used, page, PROT_NONE) != 0)
    throw_user_error("the system gives no guard page after a tensor of {} bytes", nbytes_);
  data_ = mapped_ + used - nbytes_;
  std::fill(mapped_, data_, kFence);
  tensor_ = {.data = data_,
             .device = {kDLCPU, 0},
             .ndim = static_cast<int32_t>(shape_.size()),
             .dtype = dtype.raw(),
             .shape = shape_.data(),
             .strides = strides_.data(),
             .byte_offset = 0};
}

GuardedTensor::~GuardedTensor() { ::munmap(mapped_, mapped_nbytes_); }

void GuardedTensor::fill(uint8_t byte) { std::memset(data_, byte, nbytes_); }

void GuardedTensor::copy_from(const NDArray& data) {
  if (nbytes_ > 0) std::memcpy(data_, data.data<std::byte>(), nbytes_);
}

NDArray GuardedTensor::copy() const { return NDArray::from_bytes(shape_, DataType(tensor_.dtype), {data_, nbytes_}); }

bool GuardedTensor::is_fence_whole() const {
  return std::all_of(static_cast<const std::byte*>(mapped_), static_cast<const std::byte*>(data_),
                     [](std::byte byte) { return byte == kFence; });
}

}  // namespace headrace::conformance
