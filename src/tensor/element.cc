// Access to one element of a tensor of any dtype.
#include <cmath>

#include "tensor/ndarray.h"

namespace headrace {

// Calls `visit(T* element)` with the element's C++ type; float16 and bfloat16 are handled by the callers.
template <typename F>
static auto visit_element(const DLTensor& tensor, int64_t index, F&& visit) {
  const DataType dtype(tensor.dtype);
  char* at = static_cast<char*>(tensor.data) + tensor.byte_offset + static_cast<size_t>(index) * dtype.bytes();
  switch (dtype.code()) {
    case DataType::kFloat:
      if (dtype.bits() == 32) return visit(reinterpret_cast<float*>(at));
      if (dtype.bits() == 64) return visit(reinterpret_cast<double*>(at));
      break;
    case DataType::kInt:
      if (dtype.bits() == 8) return visit(reinterpret_cast<int8_t*>(at));
      if (dtype.bits() == 16) return visit(reinterpret_cast<int16_t*>(at));
      if (dtype.bits() == 32) return visit(reinterpret_cast<int32_t*>(at));
      if (dtype.bits() == 64) return visit(reinterpret_cast<int64_t*>(at));
      break;
    case DataType::kUInt:
      if (dtype.bits() == 8) return visit(reinterpret_cast<uint8_t*>(at));
      if (dtype.bits() == 16) return visit(reinterpret_cast<uint16_t*>(at));
      if (dtype.bits() == 32) return visit(reinterpret_cast<uint32_t*>(at));
      if (dtype.bits() == 64) return visit(reinterpret_cast<uint64_t*>(at));
      break;
    case DataType::kBool:
      return visit(reinterpret_cast<uint8_t*>(at));
    default:
      break;
  }
  throw_user_error("elements of dtype {} cannot be read one by one", dtype);
}

static uint16_t* half_element(const DLTensor& tensor, int64_t index) {
  return reinterpret_cast<uint16_t*>(static_cast<char*>(tensor.data) + tensor.byte_offset) + index;
}
static bool is_float16(const DLTensor& tensor) { return tensor.dtype.code == kDLFloat && tensor.dtype.bits == 16; }
static bool is_bfloat16(const DLTensor& tensor) { return tensor.dtype.code == kDLBfloat; }

double element_as_double(const DLTensor& tensor, int64_t index) {
  if (is_float16(tensor)) return static_cast<double>(half_to_float(*half_element(tensor, index)));
  if (is_bfloat16(tensor)) return static_cast<double>(bfloat16_to_float(*half_element(tensor, index)));
  return visit_element(tensor, index, [](auto* at) { return static_cast<double>(*at); });
}

int64_t element_as_int(const DLTensor& tensor, int64_t index) {
  if (is_float16(tensor) || is_bfloat16(tensor)) return static_cast<int64_t>(element_as_double(tensor, index));
  return visit_element(tensor, index, [](auto* at) { return static_cast<int64_t>(*at); });
}

void set_element(const DLTensor& tensor, int64_t index, double value) {
  if (is_float16(tensor)) {
    *half_element(tensor, index) = float_to_half(static_cast<float>(value));
  } else if (is_bfloat16(tensor)) {
    *half_element(tensor, index) = float_to_bfloat16(static_cast<float>(value));
  } else if (tensor.dtype.code == kDLBool) {
    visit_element(tensor, index, [&](auto* at) { *at = static_cast<std::remove_pointer_t<decltype(at)>>(value != 0); });
  } else {
    visit_element(tensor, index, [&](auto* at) { *at = static_cast<std::remove_pointer_t<decltype(at)>>(value); });
  }
}

void set_element_int(const DLTensor& tensor, int64_t index, int64_t value) {
  if (is_float16(tensor) || is_bfloat16(tensor)) return set_element(tensor, index, static_cast<double>(value));
  if (tensor.dtype.code == kDLBool) return set_element(tensor, index, value != 0 ? 1.0 : 0.0);
  visit_element(tensor, index, [&](auto* at) { *at = static_cast<std::remove_pointer_t<decltype(at)>>(value); });
}

}  // namespace headrace
