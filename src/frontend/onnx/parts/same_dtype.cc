#include "frontend/onnx/parts/same_dtype.h"

namespace headrace::onnx {

void check_same_dtype(NodeContext& context) {
  const DataType first = context.dtype(context.input(0));
  for (size_t i = 1; i < context.input_count(); ++i) {
    const DataType other = context.dtype(context.input(i));
    if (other != first) context.invalid("its inputs are of dtype {} and {}; they must agree", first, other);
  }
}

}  // namespace headrace::onnx
