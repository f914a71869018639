#include "ops/loops/element.h"

namespace headrace::ops {

void fail_no_eval(DataType dtype) { throw_user_error("reference evaluation has no elements of dtype {} here", dtype); }

// Writes the elements as those of a narrow dtype. A double holds what rounds to a narrow float; of an integer the low
// bits count.
static void set_narrow(const NDArray& result, const NDArray& array) {
  const DLTensor &to = result.tensor(), &from = array.tensor();
  const bool wraps = result.dtype().is_narrow_int() && !array.dtype().is_float() && !array.dtype().is_narrow_float();
  for (int64_t i = 0, n = result.num_elements(); i < n; ++i) {
    if (wraps) {
      set_element_int(to, i, element_as_int(from, i));
    } else {
      set_element(to, i, element_as_double(from, i));
    }
  }
}

NDArray as_dtype(const NDArray& array, DataType dtype) {
  if (array.dtype() == dtype) return array;
  const NDArray result = NDArray::empty(array.shape(), dtype);
  if (dtype.is_narrow()) {
    set_narrow(result, array);
    return result;
  }
  dispatch_any(dtype, [&]<typename To>() {
    const Elements<To> to(result);
    const int64_t n = result.num_elements();
    if constexpr (std::is_same_v<To, Bool8>) {
      const auto from = reader_as<double>(array.dtype());  // 0 of every dtype and nothing else is 0 of this one
      for (int64_t i = 0; i < n; ++i) to.set(i, from(array, i) != 0 ? 1 : 0);
    } else if constexpr (sizeof(To) == 2 && is_floating<Compute<To>>) {
      const auto round_all = [&](auto from) {  // each once
        for (int64_t i = 0; i < n; ++i) to.set(i, narrow_to_odd(widen_to_odd(from(array, i))));
      };
      if (array.dtype().is_int()) {
        round_all(reader_as<int64_t>(array.dtype()));
      } else if (array.dtype().is_uint()) {
        round_all(reader_as<uint64_t>(array.dtype()));
      } else {
        round_all(reader_as<double>(array.dtype()));
      }
    } else {
      const auto from = reader_as<Compute<To>>(array.dtype());
      for (int64_t i = 0; i < n; ++i) to.set(i, from(array, i));
    }
  });
  return result;
}

}  // namespace headrace::ops
