#include "frontend/onnx/compositions/region.h"

#include "ops/image/grid.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

// The coordinates (x, y, 1) or (x, y, z, 1) of each place of a grid of those sizes.
NDArray base_grid(const Shape& sizes, bool align_corners, DataType dtype) {
  const auto spatial = static_cast<int64_t>(sizes.size()), places = num_elements(sizes);
  const NDArray base = NDArray::empty({1, places, 1, spatial + 1}, dtype);
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (int64_t k = spatial - 1; k >= 0; --k) {
      const int64_t size = sizes[static_cast<size_t>(k)], i = rest % size;
      rest /= size;
      const auto n = static_cast<double>(size);
      const double at = align_corners ? ops::grid_coordinate(i, size) : (2 * static_cast<double>(i) + 1) / n - 1;
      set_element(base.tensor(), p * (spatial + 1) + (spatial - 1 - k), at);
    }
    set_element(base.tensor(), p * (spatial + 1) + spatial, 1);
  }
  return base;
}

}  // namespace

Expr affine_grid(NodeContext& context, const Expr& theta, const Shape& sizes, bool align_corners) {
  const Span& span = context.span();
  const Expr base = relay::make_constant(base_grid(sizes, align_corners, context.dtype(theta)), span);
  const Expr products = ops::multiply(ops::expand_dims(theta, 1, 1, span), base, span);
  const Expr moved = ops::reduce("sum", products, Shape{3}, false, false, span);
  Shape shape{context.known_dim(theta, 0)};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.push_back(std::ssize(sizes));
  return context.reshape(moved, shape);
}

Expr corners_of(NodeContext& context, const Expr& boxes) {
  const Span& span = context.span();
  const Expr parts = ops::split(boxes, 2, 2, span);
  const Expr center = relay::make_tuple_get_item(parts, 0, span), size = relay::make_tuple_get_item(parts, 1, span);
  const Expr half = ops::multiply(size, context.scalar(0.5, context.dtype(boxes)), span);
  return ops::concatenate({ops::subtract(center, half, span), ops::add(center, half, span)}, 2, span);
}

}  // namespace headrace::onnx
