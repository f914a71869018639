#include "frontend/onnx/compositions/pad.h"

#include <algorithm>

#include "ops/tensor/slice.h"

namespace headrace::onnx {

Expr cropped(NodeContext& context, Expr data, Shape& pads) {
  const size_t rank = context.rank(data);
  for (size_t i = 0; i < rank; ++i) {
    int64_t &before = pads[i], &after = pads[i + rank];
    if (before >= 0 && after >= 0) continue;
    const int64_t size = context.known_dim(data, i), begin = std::max<int64_t>(-before, 0),
                  end = size + std::min<int64_t>(after, 0);
    if (begin > end) context.invalid("its pads {} and {} do not fit axis {} of {}", before, after, i, size);
    data = ops::strided_slice(data, Shape{begin}, Shape{end}, Shape{1}, Shape{static_cast<int64_t>(i)}, "end",
                              context.span());
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  return data;
}

Expr pad_wrapped(NodeContext& context, Expr data, const Shape& pads) {
  const size_t rank = context.rank(data);
  for (size_t i = 0; i < rank; ++i) {
    if (pads[i] == 0 && pads[i + rank] == 0) continue;
    const int64_t size = context.known_dim(data, i), wanted = size + pads[i] + pads[i + rank];
    if (size == 0) context.invalid("its pads {} and {} do not fit axis {}, which is empty", pads[i], pads[i + rank], i);
    context.check_table_size(wanted);
    std::vector<int64_t> places;
    for (int64_t k = 0; k < wanted; ++k) places.push_back(((k - pads[i]) % size + size) % size);
    data = ops::take(data, context.int_constant({wanted}, places), static_cast<int64_t>(i), "clip", 0, context.span());
  }
  return data;
}

}  // namespace headrace::onnx
