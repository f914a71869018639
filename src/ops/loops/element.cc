#include "ops/loops/element.h"

namespace headrace::ops {

void fail_no_eval(DataType dtype) { throw_user_error("reference evaluation has no elements of dtype {} here", dtype); }

NDArray as_dtype(const NDArray& array, DataType dtype) {
  if (array.dtype() == dtype) return array;
  const NDArray result = NDArray::empty(array.shape(), dtype);
  dispatch_number(dtype, [&]<typename To>() {
    const auto from = reader_as<Compute<To>>(array.dtype());
    const Elements<To> to(result);
    for (int64_t i = 0, n = result.num_elements(); i < n; ++i) to.set(i, from(array, i));
  });
  return result;
}

}  // namespace headrace::ops
