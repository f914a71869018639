// NDArray: a tensor in memory, over DLPack. Copying an NDArray shares its memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "object/shape_tuple.h"
#include "tensor/data_type.h"
#include "tensor/device.h"
#include "tensor/device_api.h"

namespace headrace {

// Layout: header, then the DLTensor, as the C ABI wants it.
struct NDArrayObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.NDArray";
  static constexpr int32_t static_type_index = type_index::kTensor;
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  DLTensor tensor{};
  Shape shape;
  Shape strides;                   // empty: dense, row-major
  bool read_only = false;          // set by an owner who forbids writing
  bool owns_data = false;          // the device's memory is the tensor's own
  std::function<void()> release;   // gives the memory back to whoever owns it
  std::shared_ptr<DeviceApi> api;  // keeps the device alive
  NDArrayObj() = default;
  ~NDArrayObj() {
    if (owns_data) api->free({tensor.device.device_type, tensor.device.device_id}, tensor.data, nullptr);
    if (release) release();
  }
  NDArrayObj(const NDArrayObj&) = delete;
  static bool content_equal(const NDArrayObj& a, const NDArrayObj& b);
  static uint64_t content_hash(const NDArrayObj& array);
  static std::string content_difference(const NDArrayObj& a, const NDArrayObj& b);
  static NamedValues save_content(const NDArrayObj& array);
  static Ref<NDArrayObj> load_content(const NamedValues& saved);
  static std::string content_text(const NDArrayObj& array);
};

class NDArray {
 public:
  NDArray() = default;
  explicit NDArray(Ref<NDArrayObj> object) : object_(std::move(object)) {}
  // Makes a tensor of uninitialised memory, 64-byte aligned. UserError on a negative dimension or a size that
  // overflows.
  static NDArray empty(Shape shape, DataType dtype, Device device = cpu());
  static NDArray zeros(Shape shape, DataType dtype);
  // Copies `bytes`, which must be exactly the tensor's size.
  static NDArray from_bytes(Shape shape, DataType dtype, std::span<const std::byte> bytes);
  template <typename T>
  static NDArray from_vector(Shape shape, DataType dtype, const std::vector<T>& data) {
    return from_bytes(std::move(shape), dtype, std::as_bytes(std::span<const T>(data)));
  }
  // Borrows `data`; `release` runs when the last reference goes away.
  static NDArray view(void* data, Shape shape, DataType dtype, std::function<void()> release = {});
  // Takes ownership of a DLPack tensor of either generation; its deleter runs when the last reference goes away. The
  // strides stay. UserError on a malformed tensor, a newer major version, packed elements of less than a byte, or a
  // device that is not available; the caller then still owns it.
  static NDArray from_dlpack(DLManagedTensor* managed);
  static NDArray from_dlpack(DLManagedTensorVersioned* managed);
  // Returns a DLPack tensor that shares this memory; the caller calls its deleter. The older generation cannot express
  // read-only memory or elements of less than a byte: UserError.
  DLManagedTensor* to_dlpack() const;
  DLManagedTensorVersioned* to_dlpack_versioned() const;

  explicit operator bool() const { return object_.defined(); }
  const Ref<NDArrayObj>& object() const { return object_; }
  const DLTensor& tensor() const { return object_->tensor; }
  const Shape& shape() const { return object_->shape; }
  DataType dtype() const { return DataType(object_->tensor.dtype); }
  Device device() const { return {object_->tensor.device.device_type, object_->tensor.device.device_id}; }
  int64_t num_elements() const;
  size_t size_bytes() const { return static_cast<size_t>(num_elements()) * dtype().bytes(); }
  bool is_dense() const;
  // Returns the address of the first element, of a type that the caller gives.
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(object_->tensor.data) + object_->tensor.byte_offset);
  }
  std::span<const std::byte> bytes() const { return {data<const std::byte>(), size_bytes()}; }
  // Returns a dense tensor on the CPU: this tensor itself when it is one.
  NDArray to_dense() const;
  NDArray copy() const;  // on the CPU
  void copy_from(const NDArray& src) const;
  // Returns this memory with another shape of as many elements; a dense copy when this tensor is strided.
  NDArray reshaped(Shape shape) const;
  // Returns this memory as a tensor that must not be written.
  NDArray as_read_only() const;
  // Returns XXH3-64 of dtype, shape and bytes. Computed at each call, because other owners of the memory may write to
  // it.
  uint64_t content_hash() const;
  bool content_equal(const NDArray& other) const;
  // Returns how two tensors of different content differ, for a message: by dtype, by shape, or by the first element
  // that does.
  std::string difference(const NDArray& other) const;

 private:
  Ref<NDArrayObj> object_;
};

// Elements of a shape: UserError when negative or past 2^62.
int64_t num_elements(const Shape& shape);

// Read and write element `index` of a dense tensor on the CPU as a double or an integer. Any scalar dtype and any
// alignment works. A float is rounded to nearest even, once; a conversion to an integer truncates toward zero,
// saturates at the limits and maps NaN to 0. An integer is cut to the dtype's low bits. UserError for a dtype with
// lanes.
double element_as_double(const DLTensor& tensor, int64_t index);
int64_t element_as_int(const DLTensor& tensor, int64_t index);
void set_element(const DLTensor& tensor, int64_t index, double value);
void set_element_int(const DLTensor& tensor, int64_t index, int64_t value);

template <>
inline constexpr bool none_is_null<NDArray> = true;

template <>
struct ValueTraits<NDArray> {
  static Value to(const NDArray& array) { return Value(array.object()); }
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kTensor || raw.type_index == type_index::kNone;
  }
  static NDArray from(const RawValue& raw) { return NDArray(ValueTraits<Ref<NDArrayObj>>::from(raw)); }
  static std::string name() { return "NDArray"; }
};

}  // namespace headrace
