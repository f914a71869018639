#include "frontend/onnx/parts/pool.h"

#include <numeric>

namespace headrace::onnx {

ops::PoolAttrs pool_attrs(const Windows& windows, bool ceil_mode) {
  ops::PoolAttrs attrs(windows.kernel.size());
  attrs.pool_size = windows.kernel;
  attrs.strides = windows.strides;
  attrs.dilation = windows.dilations;
  attrs.padding = windows.padding();
  attrs.ceil_mode = ceil_mode;
  return attrs;
}

Shape spatial_axes(NodeContext& context) {
  Shape axes(context.rank(context.input(0)) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

}  // namespace headrace::onnx
