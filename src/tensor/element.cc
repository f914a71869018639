// Access to one element of a tensor of any dtype.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/convert_number.h"
#include "tensor/ndarray.h"

namespace headrace {

namespace {

// float16 and bfloat16 as they lie in memory; int4 and uint4 are the low half of a byte.
enum class Kind { f16, bf16, f32, f64, i4, i8, i16, i32, i64, u4, u8, u16, u32, u64, boolean };

Kind kind_of(DataType dtype) {
  if (dtype.lanes() == 1) {
    switch (dtype.code()) {
      case DataType::kFloat:
        if (dtype.bits() == 16) return Kind::f16;
        if (dtype.bits() == 32) return Kind::f32;
        if (dtype.bits() == 64) return Kind::f64;
        break;
      case DataType::kBFloat:
        if (dtype.bits() == 16) return Kind::bf16;
        break;
      case DataType::kInt:
        if (dtype.bits() == 4) return Kind::i4;
        if (dtype.bits() == 8) return Kind::i8;
        if (dtype.bits() == 16) return Kind::i16;
        if (dtype.bits() == 32) return Kind::i32;
        if (dtype.bits() == 64) return Kind::i64;
        break;
      case DataType::kUInt:
        if (dtype.bits() == 4) return Kind::u4;
        if (dtype.bits() == 8) return Kind::u8;
        if (dtype.bits() == 16) return Kind::u16;
        if (dtype.bits() == 32) return Kind::u32;
        if (dtype.bits() == 64) return Kind::u64;
        break;
      case DataType::kBool:
        if (dtype.bits() == 8) return Kind::boolean;
        break;
      default:
        break;
    }
  }
  throw_user_error("elements of dtype {} cannot be read one by one", dtype);
}

char* address_of(const DLTensor& tensor, int64_t index) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset +
         static_cast<size_t>(index) * DataType(tensor.dtype).bytes();
}

// Reads an element, which may be unaligned in borrowed memory.
template <typename T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
void store(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename To>
To read(const DLTensor& tensor, int64_t index) {
  const char* at = address_of(tensor, index);
  switch (kind_of(DataType(tensor.dtype))) {
    case Kind::f16:
      return convert_number<To>(half_to_float(load<uint16_t>(at)));
    case Kind::bf16:
      return convert_number<To>(bfloat16_to_float(load<uint16_t>(at)));
    case Kind::f32:
      return convert_number<To>(load<float>(at));
    case Kind::f64:
      return convert_number<To>(load<double>(at));
    case Kind::i4:
      return convert_number<To>(((load<uint8_t>(at) & 0xf) ^ 8) - 8);
    case Kind::i8:
      return convert_number<To>(load<int8_t>(at));
    case Kind::i16:
      return convert_number<To>(load<int16_t>(at));
    case Kind::i32:
      return convert_number<To>(load<int32_t>(at));
    case Kind::i64:
      return convert_number<To>(load<int64_t>(at));
    case Kind::u4:
      return convert_number<To>(load<uint8_t>(at) & 0xf);
    case Kind::u8:
      return convert_number<To>(load<uint8_t>(at));
    case Kind::u16:
      return convert_number<To>(load<uint16_t>(at));
    case Kind::u32:
      return convert_number<To>(load<uint32_t>(at));
    case Kind::u64:
      return convert_number<To>(load<uint64_t>(at));
    case Kind::boolean:
      return convert_number<To>(load<uint8_t>(at) != 0 ? 1 : 0);
  }
  return To{};
}

template <typename From>
void write(const DLTensor& tensor, int64_t index, From value) {
  char* at = address_of(tensor, index);
  switch (kind_of(DataType(tensor.dtype))) {
    case Kind::f16:
      return store(at, float_to_half(narrow_to_odd(widen_to_odd(value))));
    case Kind::bf16:
      return store(at, float_to_bfloat16(narrow_to_odd(widen_to_odd(value))));
    case Kind::f32:
      return store(at, static_cast<float>(value));
    case Kind::f64:
      return store(at, static_cast<double>(value));
    case Kind::i4:
      if constexpr (std::is_floating_point_v<From>) value = std::clamp<From>(value, -8, 7);
      return store(at, static_cast<uint8_t>(convert_number<int8_t>(value) & 0xf));
    case Kind::i8:
      return store(at, convert_number<int8_t>(value));
    case Kind::i16:
      return store(at, convert_number<int16_t>(value));
    case Kind::i32:
      return store(at, convert_number<int32_t>(value));
    case Kind::i64:
      return store(at, convert_number<int64_t>(value));
    case Kind::u4:
      if constexpr (std::is_floating_point_v<From>) value = std::clamp<From>(value, 0, 15);
      return store(at, static_cast<uint8_t>(convert_number<uint8_t>(value) & 0xf));
    case Kind::u8:
      return store(at, convert_number<uint8_t>(value));
    case Kind::u16:
      return store(at, convert_number<uint16_t>(value));
    case Kind::u32:
      return store(at, convert_number<uint32_t>(value));
    case Kind::u64:
      return store(at, convert_number<uint64_t>(value));
    case Kind::boolean:
      return store(at, static_cast<uint8_t>(value != 0 ? 1 : 0));
  }
}

}  // namespace

double element_as_double(const DLTensor& tensor, int64_t index) { return read<double>(tensor, index); }
int64_t element_as_int(const DLTensor& tensor, int64_t index) { return read<int64_t>(tensor, index); }
void set_element(const DLTensor& tensor, int64_t index, double value) { write(tensor, index, value); }
void set_element_int(const DLTensor& tensor, int64_t index, int64_t value) { write(tensor, index, value); }

}  // namespace headrace
