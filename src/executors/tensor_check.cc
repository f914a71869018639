#include "executors/tensor_check.h"

#include <algorithm>
#include <span>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "base/printable.h"
#include "tensor/device_kind.h"
#include "tensor/strides.h"

namespace headrace::executors {
namespace {

using artifact::TensorSpec;

std::span<const int64_t> shape_of(const DLTensor& tensor) { return {tensor.shape, static_cast<size_t>(tensor.ndim)}; }

std::span<const int64_t> strides_of(const DLTensor& tensor) {
  return {tensor.strides, static_cast<size_t>(tensor.ndim)};
}

// Returns whether all elements lie in the address space, and no farther from `data` than one process has memory.
// Strides count elements; null means dense.
bool is_in_address_space(const DLTensor& tensor, DataType dtype) {
  using Wide = __int128;  // holds the product of a stride and an extent
  constexpr Wide kEnd = Wide{1} << 64;
  // Linux gives a process addresses of at most 56 bits (x86-64 with five levels of page tables).
  constexpr Wide kMostMemory = Wide{1} << 56;
  Wide first = 0, last = 0, dense = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return true;
  }
  for (int32_t i = tensor.ndim; i-- > 0;) {
    const Wide stride = tensor.strides == nullptr ? dense : Wide{tensor.strides[i]};
    const Wide reach = stride * (tensor.shape[i] - 1);
    if (reach < -kEnd || reach > kEnd) return false;
    (reach < 0 ? first : last) += reach;
    dense *= tensor.shape[i];
  }
  const auto item = static_cast<Wide>(dtype.bytes());
  const Wide begin = Wide{tensor.byte_offset} + first * item, end = Wide{tensor.byte_offset} + (last + 1) * item;
  const Wide data = Wide{reinterpret_cast<uintptr_t>(tensor.data)};
  return begin >= -kMostMemory && end <= kMostMemory && data + begin >= 0 && data + end <= kEnd;
}

bool is_contiguous(const TensorSpec& spec, const DLTensor& tensor) {
  return tensor.strides == nullptr || is_dense(spec.shape, strides_of(tensor));
}

bool is_aligned(const TensorSpec& spec, const DLTensor& tensor) {
  return (reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset) % spec.dtype.element().bytes() == 0;
}

// Checks one tensor; each check writes its sentence and returns false when it fails.
class TensorCheck {
 public:
  TensorCheck(std::string_view what, const TensorSpec& spec, const DLTensor& tensor, Message& message)
      : what_(what), spec_(spec), tensor_(tensor), message_(message) {}

  bool is_on_cpu() noexcept {
    const auto type = static_cast<int>(tensor_.device.device_type);
    const int id = tensor_.device.device_id;
    if (type == kDLCPU) return id == 0 || refuse("is on the device cpu({}); the CPU is cpu(0)", id);
    for (const DeviceKind& kind : device_kinds()) {
      if (kind.type == type) return refuse("is on the device {}({}); copy it to the CPU first", kind.name, id);
    }
    return refuse("is on a device of DLPack's type {}; copy it to the CPU first", type);
  }

  bool has_type() noexcept {
    if (DataType(tensor_.dtype) != spec_.dtype)
      return refuse("has dtype {}, the program takes {}", DataType(tensor_.dtype), spec_.dtype);
    if (tensor_.ndim < 0 || static_cast<size_t>(tensor_.ndim) != spec_.shape.size())
      return refuse("has {} dimensions, the program takes ({})", tensor_.ndim, fmt::join(spec_.shape, ", "));
    if (tensor_.shape == nullptr && !spec_.shape.empty()) return refuse("has no shape (shape is NULL)");
    if (!std::equal(spec_.shape.begin(), spec_.shape.end(), tensor_.shape)) {
      return refuse("has shape ({}), the program takes ({})", fmt::join(shape_of(tensor_), ", "),
                    fmt::join(spec_.shape, ", "));
    }
    return true;
  }

  bool has_memory() noexcept {
    if (tensor_.data == nullptr && artifact::tensor_nbytes(spec_.dtype, spec_.shape).value_or(0) > 0)
      return refuse("has no memory (data is NULL)");
    if (!is_in_address_space(tensor_, spec_.dtype))
      return refuse("goes past the end of the address space; check its data, byte_offset and strides");
    return true;
  }

  bool is_direct() noexcept {
    if (!is_contiguous(spec_, tensor_)) return refuse("is not contiguous; pass a contiguous copy");
    if (!is_aligned(spec_, tensor_)) {
      return refuse("is not aligned to its element of {} bytes; pass an aligned copy", spec_.dtype.element().bytes());
    }
    return true;
  }

 private:
  template <typename... Args>
  bool refuse(fmt::format_string<Args...> format, Args&&... args) noexcept {
    try {
      message_.write("{} '{}' {}", what_, escaped(spec_.name), fmt::format(format, std::forward<Args>(args)...));
    } catch (...) {
      message_.write("{} '{}' does not fit the program", what_, spec_.name);
    }
    return false;
  }

  std::string_view what_;
  const TensorSpec& spec_;
  const DLTensor& tensor_;
  Message& message_;
};

}  // namespace

bool check_tensor(std::string_view what, const TensorSpec& spec, const DLTensor& tensor, Access access,
                  Message& message) noexcept {
  TensorCheck check(what, spec, tensor, message);
  if (!check.is_on_cpu() || !check.has_type() || !check.has_memory()) return false;
  return access != Access::direct || check.is_direct();
}

bool is_direct(const TensorSpec& spec, const DLTensor& tensor) noexcept {
  return is_contiguous(spec, tensor) && is_aligned(spec, tensor);
}

void require_tensor(std::string_view what, const TensorSpec& spec, const DLTensor& tensor, Access access) {
  Message message;
  if (check_tensor(what, spec, tensor, access, message)) return;
  throw UserError(std::string(message.view()), {.op = spec.name, .place = ""});
}

}  // namespace headrace::executors
