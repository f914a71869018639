#include "tensor/ndarray.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "object/string.h"
#include "tensor/kept_memory.h"
#include "tensor/strided_copy.h"
#include "tensor/strides.h"

namespace headrace {

static constexpr size_t kAlignment = 64;

int64_t num_elements(const Shape& shape) {
  for (const int64_t dim : shape) {
    if (dim < 0) throw_user_error("shape ({}) has a negative dimension", fmt::join(shape, ", "));
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (__builtin_mul_overflow(count, dim, &count) || count > (int64_t{1} << 58))
      throw_user_error("shape ({}) has too many elements", fmt::join(shape, ", "));
  }
  return count;
}

// Returns the bytes of a dense tensor; UserError when they do not fit an address space.
static size_t dense_bytes(const Shape& shape, DataType dtype) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(num_elements(shape)), dtype.bytes(), &bytes) ||
      bytes > (size_t{1} << 47))
    throw_user_error("a tensor {}({}) is too large", dtype, fmt::join(shape, ", "));
  return bytes;
}

// Points the DLTensor at the object's own shape and strides.
static void bind_shape(NDArrayObj& object) {
  object.tensor.ndim = static_cast<int32_t>(object.shape.size());
  object.tensor.shape = object.shape.data();
  object.tensor.strides = object.strides.empty() ? nullptr : object.strides.data();
}

NDArray NDArray::empty(Shape shape, DataType dtype, Device device) {
  const size_t size_bytes = dense_bytes(shape, dtype);
  auto object = make_object<NDArrayObj>();
  object->shape = std::move(shape);
  object->tensor.dtype = dtype.raw();
  object->tensor.device = device.raw();
  object->api = device_api(device);
  object->tensor.data = object->api->alloc(device, size_bytes, kAlignment);
  object->owns_data = true;
  bind_shape(*object);
  return NDArray(object);
}

NDArray NDArray::zeros(Shape shape, DataType dtype) {
  NDArray array = empty(std::move(shape), dtype);
  std::memset(array.data<void>(), 0, array.size_bytes());
  return array;
}

NDArray NDArray::from_bytes(Shape shape, DataType dtype, std::span<const std::byte> bytes) {
  // Before anything is allocated: a few characters of text must not ask for terabytes.
  if (const size_t wanted = dense_bytes(shape, dtype); bytes.size() != wanted)
    throw_user_error("a tensor {}({}) takes {} bytes, got {}", dtype, fmt::join(shape, ", "), wanted, bytes.size());
  NDArray array = empty(std::move(shape), dtype);
  if (!bytes.empty()) std::memcpy(array.data<void>(), bytes.data(), bytes.size());
  return array;
}

NDArray NDArray::view(void* data, Shape shape, DataType dtype, std::function<void()> release) {
  const size_t size_bytes = dense_bytes(shape, dtype);
  if (data == nullptr && size_bytes != 0) throw_user_error("a view of {} bytes at a null address", size_bytes);
  auto object = make_object<NDArrayObj>();
  object->shape = std::move(shape);
  object->tensor.dtype = dtype.raw();
  object->tensor.device = cpu().raw();
  object->tensor.data = data;
  object->release = std::move(release);
  bind_shape(*object);
  return NDArray(object);
}

// Checks a foreign tensor as far as possible without touching its memory.
static void check_foreign(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxStridedRank)
    throw_user_error("DLPack tensor: it has {} dimensions, not 0 to {}", tensor.ndim, kMaxStridedRank);
  if (tensor.ndim > 0 && tensor.shape == nullptr) throw_user_error("DLPack tensor: its shape is missing");
  const DataType dtype(tensor.dtype);
  if (dtype.bits() == 0 || dtype.lanes() == 0) throw_user_error("DLPack tensor: its dtype has 0 bits or 0 lanes");
  const Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  const size_t size_bytes = dense_bytes(shape, dtype);
  if (size_bytes != 0 && tensor.data == nullptr) throw_user_error("DLPack tensor: its data is missing");
  if (tensor.byte_offset > (uint64_t{1} << 47))
    throw_user_error("DLPack tensor: its byte offset {} is too large", tensor.byte_offset);
  if (tensor.strides == nullptr || size_bytes == 0) return;
  const auto limit = __int128{1} << 47;
  __int128 reach = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const __int128 stride = tensor.strides[i];
    reach += (stride < 0 ? -stride : stride) * (shape[i] - 1) * static_cast<__int128>(dtype.bytes());
    if (reach > limit) throw_user_error("DLPack tensor: stride {} of dimension {} is too large", tensor.strides[i], i);
  }
}

static NDArray adopt_tensor(const DLTensor& tensor, bool read_only, std::function<void()> release) {
  check_foreign(tensor);
  auto object = make_object<NDArrayObj>();
  object->tensor = tensor;
  object->read_only = read_only;
  object->api = device_api({tensor.device.device_type, tensor.device.device_id});
  object->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides != nullptr) object->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
  bind_shape(*object);
  NDArray array(object);
  if (array.is_dense()) {
    object->strides.clear();
    bind_shape(*object);
  }
  object->release = std::move(release);  // last: an exception before leaves the tensor with the caller
  return array;
}

NDArray NDArray::from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw_user_error("DLPack tensor: a null pointer");
  if (managed->dl_tensor.dtype.bits % 8 != 0)
    throw_user_error("DLPack tensor: elements of {} bits need the versioned form", managed->dl_tensor.dtype.bits);
  return adopt_tensor(managed->dl_tensor, false, [managed] {
    if (managed->deleter != nullptr && !holds_kept_memory(managed->dl_tensor)) managed->deleter(managed);
  });
}

NDArray NDArray::from_dlpack(DLManagedTensorVersioned* managed) {
  if (managed == nullptr) throw_user_error("DLPack tensor: a null pointer");
  if (managed->version.major != DLPACK_MAJOR_VERSION)
    throw_user_error("DLPack tensor: version {}.{}, expected {}", managed->version.major, managed->version.minor,
                     DLPACK_MAJOR_VERSION);
  if (managed->dl_tensor.dtype.bits % 8 != 0 && (managed->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) == 0)
    throw_user_error("DLPack tensor: packed elements of {} bits; one byte each is supported",
                     managed->dl_tensor.dtype.bits);
  return adopt_tensor(managed->dl_tensor, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0, [managed] {
    if (managed->deleter != nullptr && !holds_kept_memory(managed->dl_tensor)) managed->deleter(managed);
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

DLManagedTensor* NDArray::to_dlpack() const {
  if (object_->read_only) throw_user_error("a read-only tensor needs the versioned form of DLPack");
  if (dtype().bits() % 8 != 0) throw_user_error("a tensor of {} needs the versioned form of DLPack", dtype());
  return export_tensor<DLManagedTensor>(*this);
}

DLManagedTensorVersioned* NDArray::to_dlpack_versioned() const {
  auto* managed = export_tensor<DLManagedTensorVersioned>(*this);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = object_->read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  if (dtype().bits() % 8 != 0) managed->flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return managed;
}

int64_t NDArray::num_elements() const { return headrace::num_elements(object_->shape); }

bool NDArray::is_dense() const { return object_->strides.empty() || headrace::is_dense(shape(), object_->strides); }

NDArray NDArray::to_dense() const {
  if (device().type != kDLCPU) {
    if (!is_dense()) throw_user_error("a strided tensor on {} cannot be copied to the CPU", device().to_string());
    NDArray host = empty(shape(), dtype());
    host.copy_from(*this);
    return host;
  }
  if (is_dense()) return *this;
  NDArray dense = empty(shape(), dtype());
  copy_strided(tensor(), dtype().bytes(), dense.data<std::byte>());
  return dense;
}

NDArray NDArray::copy() const {
  NDArray result = empty(shape(), dtype());
  result.copy_from(*this);
  return result;
}

void NDArray::copy_from(const NDArray& src) const {
  if (shape() != src.shape() || dtype() != src.dtype())
    throw_user_error("cannot copy a tensor {}({}) into {}({}): shape and dtype must be equal", src.dtype(),
                     fmt::join(src.shape(), ", "), dtype(), fmt::join(shape(), ", "));
  if (object_->read_only) throw_user_error("cannot copy into a read-only tensor");
  if (!is_dense()) {
    if (device().type != kDLCPU) throw_user_error("cannot copy into a strided tensor on {}", device().to_string());
    const NDArray dense = src.to_dense();
    return copy_to_strided(dense.data<std::byte>(), dtype().bytes(), tensor());
  }
  // Two devices of unlike types meet on the CPU.
  const bool unlike = src.device().type != kDLCPU && device().type != kDLCPU && src.device().type != device().type;
  const NDArray dense = src.is_dense() && !unlike ? src : src.to_dense();
  const Device far = dense.device().type == kDLCPU ? device() : dense.device();
  const auto api = device_api(far);
  api->copy(dense.data<void>(), dense.device(), data<void>(), device(), size_bytes(), nullptr);
  api->sync(far, nullptr);
}

// Returns a tensor of the same memory with another shape and strides.
static Ref<NDArrayObj> shared(const NDArray& array, Shape shape, Shape strides) {
  auto object = make_object<NDArrayObj>();
  object->tensor = array.tensor();
  object->shape = std::move(shape);
  object->strides = std::move(strides);
  object->read_only = array.object()->read_only;
  object->api = array.object()->api;
  object->release = [array] {};
  bind_shape(*object);
  return object;
}

NDArray NDArray::reshaped(Shape shape) const {
  if (headrace::num_elements(shape) != num_elements())
    throw_user_error("cannot reshape ({}) to ({}): the number of elements differs", fmt::join(this->shape(), ", "),
                     fmt::join(shape, ", "));
  return NDArray(shared(is_dense() ? *this : to_dense(), std::move(shape), {}));
}

NDArray NDArray::as_read_only() const {
  if (object_->read_only) return *this;
  const Ref<NDArrayObj> object = shared(*this, shape(), object_->strides);
  object->read_only = true;
  return NDArray(object);
}

uint64_t NDArray::content_hash() const {
  const NDArray dense = to_dense();
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const DLDataType dtype = object_->tensor.dtype;
  XXH3_64bits_update(&state, &dtype, sizeof dtype);
  const uint64_t rank = shape().size();
  XXH3_64bits_update(&state, &rank, sizeof rank);
  if (!shape().empty()) XXH3_64bits_update(&state, shape().data(), shape().size() * sizeof(int64_t));
  if (dense.size_bytes() != 0) XXH3_64bits_update(&state, dense.data<void>(), dense.size_bytes());
  return XXH3_64bits_digest(&state);
}

bool NDArray::content_equal(const NDArray& other) const {
  if (object_ == other.object_) return true;
  if (dtype() != other.dtype() || shape() != other.shape()) return false;
  const NDArray a = to_dense(), b = other.to_dense();
  return a.size_bytes() == 0 || std::memcmp(a.data<void>(), b.data<void>(), a.size_bytes()) == 0;
}

// Returns an element as messages show it: a number, or nothing where the dtype is not numeric.
static std::string number_text(const NDArray& dense, int64_t index) {
  try {
    if (dense.dtype().is_float()) return fmt::format("{}", element_as_double(dense.tensor(), index));
    const int64_t value = element_as_int(dense.tensor(), index);
    return dense.dtype().is_uint() ? fmt::format("{}", static_cast<uint64_t>(value)) : fmt::format("{}", value);
  } catch (const UserError&) {
    return "";
  }
}

static std::string bits_text(const NDArray& dense, int64_t index) {
  const size_t size = dense.dtype().bytes();
  const auto element = dense.bytes().subspan(static_cast<size_t>(index) * size, size);
  std::string text = "0x";
  for (size_t i = size; i-- > 0;) text += fmt::format("{:02x}", std::to_integer<unsigned>(element[i]));
  return text;
}

// Returns the indices of element `at` of a dense tensor.
static Shape indices_of(const Shape& shape, int64_t at) {
  Shape indices(shape.size());
  for (size_t i = shape.size(); i-- > 0; at /= shape[i]) indices[i] = at % shape[i];
  return indices;
}

std::string NDArray::difference(const NDArray& other) const {
  if (dtype() != other.dtype()) return fmt::format("dtype {} against {}", dtype(), other.dtype());
  if (shape() != other.shape())
    return fmt::format("shape ({}) against ({})", fmt::join(shape(), ", "), fmt::join(other.shape(), ", "));
  const NDArray a = to_dense(), b = other.to_dense();
  const auto [left, right] = std::mismatch(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
  if (left == a.bytes().end()) return "";
  const auto at = (left - a.bytes().begin()) / static_cast<int64_t>(dtype().bytes());
  std::string mine = number_text(a, at), others = number_text(b, at);
  if (mine == others) mine = bits_text(a, at), others = bits_text(b, at);  // no numbers, or two kinds of NaN
  return fmt::format("element [{}] is {} against {}", fmt::join(indices_of(shape(), at), ", "), mine, others);
}

static NDArray array_of(const NDArrayObj& object) { return NDArray(ref(&object)); }

bool NDArrayObj::content_equal(const NDArrayObj& a, const NDArrayObj& b) {
  return array_of(a).content_equal(array_of(b));
}
uint64_t NDArrayObj::content_hash(const NDArrayObj& array) { return array_of(array).content_hash(); }
std::string NDArrayObj::content_difference(const NDArrayObj& a, const NDArrayObj& b) {
  return array_of(a).difference(array_of(b));
}

std::string NDArrayObj::content_text(const NDArrayObj& object) {
  const NDArray array = array_of(object);
  return fmt::format("NDArray({}, ({}))", array.dtype(), fmt::join(array.shape(), ", "));
}

NamedValues NDArrayObj::save_content(const NDArrayObj& object) {
  const NDArray dense = array_of(object).to_dense();
  const auto bytes = dense.bytes();
  return {{"dtype", dense.dtype()},
          {"shape", dense.shape()},
          {"data", Bytes{std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())}}};
}

Ref<NDArrayObj> NDArrayObj::load_content(const NamedValues& saved) {
  if (saved.size() != 3 || saved[0].first != "dtype" || saved[1].first != "shape" || saved[2].first != "data")
    throw_user_error("an NDArray must be saved as dtype, shape and data");
  const auto dtype = saved[0].second.as<DataType>();
  if (dtype.bits() == 0 || dtype.lanes() == 0) throw_user_error("the dtype of an NDArray has 0 bits or 0 lanes");
  auto shape = saved[1].second.as<Shape>();
  const auto data = saved[2].second.as<Bytes>().data;
  return NDArray::from_bytes(std::move(shape), dtype, std::as_bytes(std::span<const char>(data))).object();
}

}  // namespace headrace
