#include "executors/pipeline/tensor_pool.h"

#include <mutex>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "runtime/aligned_buffer.h"

namespace headrace::executors::pipeline {

using runtime::AlignedBuffer;

struct TensorPool::Shared {
  DataType dtype;
  Shape shape;
  Device device;
  int64_t nbytes = 0;
  size_t most_idle = 0;
  std::mutex mutex;
  std::vector<std::unique_ptr<AlignedBuffer>> idle;

  void give_back(std::unique_ptr<AlignedBuffer> buffer) {
    const std::lock_guard lock(mutex);
    if (idle.size() < most_idle) idle.push_back(std::move(buffer));
  }
};

TensorPool::TensorPool(const artifact::TensorSpec& spec, size_t first, size_t most_idle)
    : shared_(std::make_shared<Shared>()) {
  const auto nbytes = artifact::tensor_nbytes(spec.dtype, spec.shape);
  if (!nbytes.has_value())
    throw_user_error("'{}' is {} ({}), which is not a type of a tensor", spec.name, spec.dtype,
                     fmt::join(spec.shape, ", "));
  shared_->dtype = spec.dtype;
  shared_->shape = Shape(spec.shape.begin(), spec.shape.end());
  shared_->device = spec.location.device;
  shared_->nbytes = *nbytes;
  if (shared_->device != cpu()) return;
  shared_->most_idle = most_idle;
  shared_->idle.reserve(most_idle);
  for (size_t i = 0; i < first; ++i) shared_->idle.push_back(std::make_unique<AlignedBuffer>(*nbytes));
}

NDArray TensorPool::take() {
  if (shared_->device != cpu()) return NDArray::empty(shared_->shape, shared_->dtype, shared_->device);
  std::unique_ptr<AlignedBuffer> buffer;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->idle.empty()) {
      buffer = std::move(shared_->idle.back());
      shared_->idle.pop_back();
    }
  }
  if (buffer == nullptr) buffer = std::make_unique<AlignedBuffer>(shared_->nbytes);
  void* data = buffer->data();
  auto release = [shared = shared_, held = buffer.get()] { shared->give_back(std::unique_ptr<AlignedBuffer>(held)); };
  NDArray array = NDArray::view(data, shared_->shape, shared_->dtype, std::move(release));
  static_cast<void>(buffer.release());  // the tensor has it now
  return array;
}

}  // namespace headrace::executors::pipeline
