#include "tensor/ndarray.h"

#include <xxhash.h>

#include <cmath>

namespace headrace {

static constexpr size_t kAlignment = 64;

int64_t num_elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) throw_user_error("shape ({}) has a negative dimension", fmt::join(shape, ", "));
    if (__builtin_mul_overflow(count, dim, &count) || count > (int64_t{1} << 58))
      throw_user_error("shape ({}) has too many elements", fmt::join(shape, ", "));
  }
  return count;
}

// Points the DLTensor at the object's own shape and strides.
static void bind_shape(NDArrayObj& object) {
  object.tensor.ndim = static_cast<int32_t>(object.shape.size());
  object.tensor.shape = object.shape.data();
  object.tensor.strides = object.strides.empty() ? nullptr : object.strides.data();
}

NDArray NDArray::empty(Shape shape, DataType dtype, Device device) {
  const size_t size_bytes = static_cast<size_t>(headrace::num_elements(shape)) * dtype.bytes();
  auto object = make_object<NDArrayObj>();
  object->shape = std::move(shape);
  object->tensor.dtype = dtype.raw();
  object->tensor.device = device.raw();
  object->api = device_api(device);
  object->tensor.data = object->api->alloc(device, size_bytes, kAlignment);
  object->release = [api = object->api, device, data = object->tensor.data] { api->free(device, data, nullptr); };
  bind_shape(*object);
  return NDArray(object);
}

NDArray NDArray::zeros(Shape shape, DataType dtype) {
  NDArray array = empty(std::move(shape), dtype);
  std::memset(array.data<void>(), 0, array.size_bytes());
  return array;
}

NDArray NDArray::from_bytes(Shape shape, DataType dtype, std::span<const std::byte> bytes) {
  NDArray array = empty(std::move(shape), dtype);
  if (bytes.size() != array.size_bytes())
    throw_user_error("a tensor {}({}) takes {} bytes, got {}", dtype, fmt::join(array.shape(), ", "),
                     array.size_bytes(), bytes.size());
  if (!bytes.empty()) std::memcpy(array.data<void>(), bytes.data(), bytes.size());
  return array;
}

NDArray NDArray::view(void* data, Shape shape, DataType dtype, std::function<void()> release) {
  headrace::num_elements(shape);
  auto object = make_object<NDArrayObj>();
  object->shape = std::move(shape);
  object->tensor.dtype = dtype.raw();
  object->tensor.device = cpu().raw();
  object->tensor.data = data;
  object->release = std::move(release);
  bind_shape(*object);
  return NDArray(object);
}

static NDArray adopt_tensor(const DLTensor& tensor, std::function<void()> release) {
  auto object = make_object<NDArrayObj>();
  object->release = std::move(release);
  object->tensor = tensor;
  object->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  headrace::num_elements(object->shape);
  if (tensor.strides != nullptr) object->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  bind_shape(*object);
  NDArray array(object);
  if (array.is_dense()) {
    object->strides.clear();
    bind_shape(*object);
  }
  return array;
}

NDArray NDArray::from_dlpack(DLManagedTensor* managed) {
  return adopt_tensor(managed->dl_tensor, [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

NDArray NDArray::from_dlpack(DLManagedTensorVersioned* managed) {
  return adopt_tensor(managed->dl_tensor, [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

// DLPack wants strides from version 1.2 on; they live as long as the export.
namespace {
template <typename Managed>
struct Export {
  Managed managed{};
  NDArray array;
  Shape strides;
};

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

template <typename Managed>
Managed* export_tensor(const NDArray& array) {
  auto* owner = new Export<Managed>{{}, array, array.object()->strides};
  if (owner->strides.empty()) owner->strides = dense_strides(array.shape());
  owner->managed.dl_tensor = array.tensor();
  owner->managed.dl_tensor.strides = owner->strides.data();
  owner->managed.manager_ctx = owner;
  owner->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->manager_ctx); };
  return &owner->managed;
}
}  // namespace

DLManagedTensor* NDArray::to_dlpack() const { return export_tensor<DLManagedTensor>(*this); }

DLManagedTensorVersioned* NDArray::to_dlpack_versioned() const {
  auto* managed = export_tensor<DLManagedTensorVersioned>(*this);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = 0;
  return managed;
}

int64_t NDArray::num_elements() const { return headrace::num_elements(object_->shape); }

bool NDArray::is_dense() const {
  if (object_->strides.empty()) return true;
  const Shape dense = dense_strides(shape());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (shape()[i] != 1 && object_->strides[i] != dense[i]) return num_elements() == 0;
  }
  return true;
}

static NDArray gather_strided(const NDArray& src) {
  NDArray dst = NDArray::empty(src.shape(), src.dtype());
  const size_t item = src.dtype().bytes();
  const Shape& shape = src.shape();
  const Shape& strides = src.object()->strides;
  Shape index(shape.size(), 0);
  const int64_t count = dst.num_elements();
  for (int64_t at = 0; at < count; ++at) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset += index[d] * strides[d];
    std::memcpy(dst.data<char>() + static_cast<size_t>(at) * item,
                src.data<char>() + offset * static_cast<int64_t>(item), item);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return dst;
}

NDArray NDArray::to_dense() const {
  if (device().type != kDLCPU) {
    HEADRACE_CHECK(is_dense() && object_->api, "a strided tensor on {} is not supported", device().to_string());
    NDArray host = empty(shape(), dtype());
    host.copy_from(*this);
    return host;
  }
  return is_dense() ? *this : gather_strided(*this);
}

NDArray NDArray::copy() const {
  NDArray result = empty(shape(), dtype());
  result.copy_from(*this);
  return result;
}

void NDArray::copy_from(const NDArray& src) const {
  if (shape() != src.shape() || dtype() != src.dtype())
    throw_user_error("cannot copy a tensor {}({}) into {}({})", src.dtype(), fmt::join(src.shape(), ", "), dtype(),
                     fmt::join(shape(), ", "));
  if (!is_dense()) throw_user_error("cannot copy into a strided tensor");
  const NDArray dense = src.is_dense() ? src : src.to_dense();
  const Device far = dense.device().type == kDLCPU ? device() : dense.device();
  device_api(far)->copy(dense.data<void>(), dense.device(), data<void>(), device(), size_bytes(), nullptr);
}

NDArray NDArray::reshaped(Shape shape) const {
  if (headrace::num_elements(shape) != num_elements())
    throw_user_error("cannot reshape ({}) to ({}): the number of elements differs", fmt::join(this->shape(), ", "),
                     fmt::join(shape, ", "));
  const NDArray dense = to_dense();
  NDArray result = view(dense.data<void>(), std::move(shape), dtype(), [dense] {});
  return result;
}

uint64_t NDArray::content_hash() const {
  uint64_t hash = object_->cached_hash.load(std::memory_order_relaxed);
  if (hash != 0) return hash;
  const NDArray dense = to_dense();
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const DLDataType dtype = object_->tensor.dtype;
  XXH3_64bits_update(&state, &dtype, sizeof dtype);
  if (!shape().empty()) XXH3_64bits_update(&state, shape().data(), shape().size() * sizeof(int64_t));
  XXH3_64bits_update(&state, dense.data<void>(), dense.size_bytes());
  hash = std::max<uint64_t>(XXH3_64bits_digest(&state), 1);
  object_->cached_hash.store(hash, std::memory_order_relaxed);
  return hash;
}

bool NDArray::content_equal(const NDArray& other) const {
  if (object_ == other.object_) return true;
  if (dtype() != other.dtype() || shape() != other.shape()) return false;
  const NDArray a = to_dense(), b = other.to_dense();
  return a.size_bytes() == 0 || std::memcmp(a.data<void>(), b.data<void>(), a.size_bytes()) == 0;
}

}  // namespace headrace
