#include "ops/loops/element.h"

namespace headrace::ops {

void fail_no_eval(DataType dtype) { throw_user_error("reference evaluation has no elements of dtype {} here", dtype); }

NDArray as_dtype(const NDArray& array, DataType dtype) {
  if (array.dtype() == dtype) return array;
  const NDArray result = NDArray::empty(array.shape(), dtype);
  dispatch_number(array.dtype(), [&]<typename From>() {
    dispatch_number(dtype, [&]<typename To>() {
      const Elements<From> from(array);
      const Elements<To> to(result);
      for (int64_t i = 0, n = result.num_elements(); i < n; ++i) to.set(i, convert_number<Compute<To>>(from[i]));
    });
  });
  return result;
}

}  // namespace headrace::ops
