// The element types that `eval` computes with: dispatch from a DataType to a C++ type.
#pragma once

#include <limits>

#include "ops/op_keys.h"
#include "tensor/convert_number.h"

namespace headrace::ops {

// Storage of the dtypes that C++ has no type for. They convert from and to the type that computing is done in.
struct Float16 {
  uint16_t bits;
  Float16() = default;
  explicit Float16(float value) : bits(float_to_half(value)) {}
  explicit operator float() const { return half_to_float(bits); }
};
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(float_to_bfloat16(value)) {}
  explicit operator float() const { return bfloat16_to_float(bits); }
};
struct Bool8 {
  uint8_t bits;
  Bool8() = default;
  explicit Bool8(uint8_t value) : bits(value != 0) {}
  explicit operator uint8_t() const { return bits != 0; }
};

namespace detail {
template <typename T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<Float16> {
  using type = float;
};
template <>
struct ComputeOf<BFloat16> {
  using type = float;
};
template <>
struct ComputeOf<Bool8> {
  using type = uint8_t;
};
}  // namespace detail

// The type that elements stored as T are computed with.
template <typename T>
using Compute = typename detail::ComputeOf<T>::type;

// Elements of a dense tensor; reads and writes as Compute<T>.
template <typename T>
struct Elements {
  T* data;
  explicit Elements(const NDArray& array) : data(array.data<T>()) {}
  Compute<T> operator[](int64_t i) const { return static_cast<Compute<T>>(data[i]); }
  void set(int64_t i, Compute<T> value) const { data[i] = static_cast<T>(value); }
};

template <typename C>
inline constexpr bool is_floating = std::is_floating_point_v<C>;
// Returns the least value of a type, from which a maximum starts.
template <typename C>
C least_value() {
  if constexpr (is_floating<C>) {
    return -std::numeric_limits<C>::infinity();
  } else {
    return std::numeric_limits<C>::min();
  }
}

// The type in which the mean of elements of type T is summed: 64-bit integers, because a mean fits where the sum would
// overflow.
template <typename T>
using Total =
    std::conditional_t<is_floating<Compute<T>>, Compute<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Compute with wrap-around for integers, on unsigned numbers, for which C++ defines it.
template <typename C>
C wrapping_add(C a, C b) {
  if constexpr (is_floating<C>) {
    return a + b;
  } else {
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}
template <typename C>
C wrapping_mul(C a, C b) {
  if constexpr (is_floating<C>) {
    return a * b;
  } else {
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}

// Returns `array` itself, or its elements converted to `dtype` (floats, integers, bool, narrow ones).
NDArray as_dtype(const NDArray& array, DataType dtype);

[[noreturn]] void fail_no_eval(DataType dtype);

// Calls body.template operator()<T>() with the storage type of a floating dtype; UserError for another.
template <typename F>
auto dispatch_float(DataType dtype, F&& body) {
  if (dtype == DataType::float_(32)) return body.template operator()<float>();
  if (dtype == DataType::float_(64)) return body.template operator()<double>();
  if (dtype == DataType::float_(16)) return body.template operator()<Float16>();
  if (dtype == DataType::bfloat16()) return body.template operator()<BFloat16>();
  fail_no_eval(dtype);
}

// Calls `body` for integer dtypes of 8 to 64 bits.
template <typename F>
auto dispatch_int(DataType dtype, F&& body) {
  if (dtype == DataType::int_(64)) return body.template operator()<int64_t>();
  if (dtype == DataType::int_(32)) return body.template operator()<int32_t>();
  if (dtype == DataType::int_(16)) return body.template operator()<int16_t>();
  if (dtype == DataType::int_(8)) return body.template operator()<int8_t>();
  if (dtype == DataType::uint(64)) return body.template operator()<uint64_t>();
  if (dtype == DataType::uint(32)) return body.template operator()<uint32_t>();
  if (dtype == DataType::uint(16)) return body.template operator()<uint16_t>();
  if (dtype == DataType::uint(8)) return body.template operator()<uint8_t>();
  fail_no_eval(dtype);
}

// Floats and integers.
template <typename F>
auto dispatch_number(DataType dtype, F&& body) {
  return dtype.is_float() ? dispatch_float(dtype, body) : dispatch_int(dtype, body);
}

// Floats, integers and bool.
template <typename F>
auto dispatch_any(DataType dtype, F&& body) {
  if (dtype == DataType::bool_()) return body.template operator()<Bool8>();
  return dispatch_number(dtype, body);
}

// Calls `body` for all dtypes whose elements are copied. Those of narrow ones are copied as bytes.
template <typename F>
auto dispatch_copied(DataType dtype, F&& body) {
  return dispatch_any(dtype.is_narrow() ? DataType::uint(8) : dtype, body);
}

// Returns a function that reads an element of a tensor of this dtype as a C, so that a loop over two dtypes is not
// compiled for each pair. The dtype may be narrow.
template <typename C>
auto reader_as(DataType dtype) -> C (*)(const NDArray&, int64_t) {
  if (dtype.is_narrow_int())
    return [](const NDArray& array, int64_t i) { return convert_number<C>(element_as_int(array.tensor(), i)); };
  if (dtype.is_narrow_float())
    return [](const NDArray& array, int64_t i) { return convert_number<C>(element_as_double(array.tensor(), i)); };
  return dispatch_any(dtype, []<typename From>() -> C (*)(const NDArray&, int64_t) {
    return [](const NDArray& array, int64_t i) { return convert_number<C>(Elements<From>(array)[i]); };
  });
}

}  // namespace headrace::ops
