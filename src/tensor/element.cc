// Access to one element of a tensor of any dtype.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/convert_number.h"
#include "tensor/narrow_float.h"
#include "tensor/ndarray.h"

namespace headrace {

namespace {

// float16, bfloat16 and narrow floats as they lie in memory; of a narrow integer, the low bits of a byte count.
enum class Kind { narrow, f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, narrow_int, boolean };

Kind kind_of(DataType dtype) {
  if (dtype.lanes() == 1) {
    if (dtype.is_narrow()) return dtype.is_narrow_float() ? Kind::narrow : Kind::narrow_int;
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
        if (dtype.bits() == 8) return Kind::i8;
        if (dtype.bits() == 16) return Kind::i16;
        if (dtype.bits() == 32) return Kind::i32;
        if (dtype.bits() == 64) return Kind::i64;
        break;
      case DataType::kUInt:
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

// Returns the number of the low bits of `value`, those of a narrow integer.
int cut_to_bits(int value, DataType dtype) {
  const int past = 1 << dtype.bits(), low = value & (past - 1);
  return dtype.is_int() && low >= past / 2 ? low - past : low;
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
  const DataType dtype(tensor.dtype);
  switch (kind_of(dtype)) {
    case Kind::narrow:
      return convert_number<To>(narrow_to_float(load<uint8_t>(at), dtype));
    case Kind::f16:
      return convert_number<To>(half_to_float(load<uint16_t>(at)));
    case Kind::bf16:
      return convert_number<To>(bfloat16_to_float(load<uint16_t>(at)));
    case Kind::f32:
      return convert_number<To>(load<float>(at));
    case Kind::f64:
      return convert_number<To>(load<double>(at));
    case Kind::i8:
      return convert_number<To>(load<int8_t>(at));
    case Kind::i16:
      return convert_number<To>(load<int16_t>(at));
    case Kind::i32:
      return convert_number<To>(load<int32_t>(at));
    case Kind::i64:
      return convert_number<To>(load<int64_t>(at));
    case Kind::narrow_int:
      return convert_number<To>(cut_to_bits(load<uint8_t>(at), dtype));
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
  const DataType dtype(tensor.dtype);
  switch (kind_of(dtype)) {
    case Kind::narrow:
      return store(at, float_to_narrow(narrow_to_odd(widen_to_odd(value)), dtype));
    case Kind::f16:
      return store(at, float_to_half(narrow_to_odd(widen_to_odd(value))));
    case Kind::bf16:
      return store(at, float_to_bfloat16(narrow_to_odd(widen_to_odd(value))));
    case Kind::f32:
      return store(at, static_cast<float>(value));
    case Kind::f64:
      return store(at, static_cast<double>(value));
    case Kind::i8:
      return store(at, convert_number<int8_t>(value));
    case Kind::i16:
      return store(at, convert_number<int16_t>(value));
    case Kind::i32:
      return store(at, convert_number<int32_t>(value));
    case Kind::i64:
      return store(at, convert_number<int64_t>(value));
    case Kind::narrow_int: {
      const int past = 1 << dtype.bits(), least = dtype.is_int() ? -past / 2 : 0;
      if constexpr (std::is_floating_point_v<From>) value = std::clamp<From>(value, least, least + past - 1);
      return store(at, static_cast<uint8_t>(cut_to_bits(convert_number<int>(value), dtype)));
    }
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
