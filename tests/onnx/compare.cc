#include "compare.h"

#include <cmath>

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx_test {

namespace {

bool is_close(double got, double expected, double relative) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  if (!std::isfinite(got) || !std::isfinite(expected)) return false;
  return std::abs(got - expected) <= kAbsolute + relative * std::abs(expected);
}

}  // namespace

NDArray to_array(const onnx::TensorData& data) {
  const auto dtype = onnx::find_dtype(data.type);
  if (!dtype) throw_user_error("a tensor of {} has no dtype here", onnx::element_type_name(data.type));
  if (data.bytes.empty()) return NDArray::empty(data.dims, *dtype);
  return NDArray::from_bytes(data.dims, *dtype, data.bytes);
}

std::string difference(const NDArray& got, const onnx::TensorData& expected_data) {
  const NDArray expected = to_array(expected_data);
  if (got.dtype() != expected.dtype()) return fmt::format("dtype {}, expected {}", got.dtype(), expected.dtype());
  if (got.shape() != expected.shape()) {
    return fmt::format("shape ({}), expected ({})", fmt::join(got.shape(), ", "), fmt::join(expected.shape(), ", "));
  }
  const NDArray dense = got.to_dense();
  const DataType dtype = dense.dtype();
  const double relative = dtype.is_bfloat16() ? kRelativeBfloat16 : kRelative;
  for (int64_t i = 0; i < dense.num_elements(); ++i) {
    if (!dtype.is_float() && !dtype.is_narrow_float()) {
      const int64_t a = element_as_int(dense.tensor(), i), b = element_as_int(expected.tensor(), i);
      if (a != b) return fmt::format("element {} is {}, expected {}", i, a, b);
    } else {
      const double a = element_as_double(dense.tensor(), i), b = element_as_double(expected.tensor(), i);
      const bool is_right = dtype.is_float() ? is_close(a, b, relative) : a == b || (std::isnan(a) && std::isnan(b));
      if (!is_right) return fmt::format("element {} is {}, expected {}", i, a, b);
    }
  }
  return "";
}

}  // namespace headrace::onnx_test
