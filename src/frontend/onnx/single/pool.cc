#include "frontend/onnx/parts/pool.h"
#include "frontend/onnx/single/rows.h"
#include "ops/nn/adaptive_pool.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

namespace {

// ONNX MaxPool (1, 8, 10, 11, 12). The indices (output 1) are not given.
Exprs convert_max_pool(NodeContext& context) {
  spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  context.flag_attr("storage_order", false);  // orders the indices only
  const Windows windows = read_windows(context, read_kernel_shape(context));
  const bool ceil_mode = context.flag_attr("ceil_mode", false);
  return {ops::max_pool(context.input(0), pool_attrs(windows, ceil_mode), context.span())};
}

// ONNX AveragePool (1, 7, 10, 11).
Exprs convert_average_pool(NodeContext& context) {
  spatial_rank(context, 3);
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const Windows windows = read_windows(context, read_kernel_shape(context));
  auto attrs = pool_attrs(windows, context.flag_attr("ceil_mode", false));
  attrs.count_include_pad = context.flag_attr("count_include_pad", false);
  return {ops::avg_pool(context.input(0), attrs, context.span())};
}

// ONNX GlobalAveragePool-1, GlobalMaxPool-1.
template <bool is_max>
Exprs convert_global_pool(NodeContext& context) {
  const size_t spatial = spatial_rank(context, 8);
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (spatial > 3)
    return {ops::reduce(is_max ? "max" : "mean", context.input(0), spatial_axes(context), true, false, context.span())};
  if (spatial != 2) return {ops::adaptive_pool(is_max, context.input(0), Shape(spatial, 1), context.span())};
  return {is_max ? ops::global_max_pool2d(context.input(0), "NCHW", context.span())
                 : ops::global_avg_pool2d(context.input(0), "NCHW", context.span())};
}

}  // namespace

std::span<const OpRow> pool_rows() {
  static constexpr OpRow kRows[] = {
      {"MaxPool", convert_max_pool, 1, 1},
      {"AveragePool", convert_average_pool, 1, 1},
      {"GlobalAveragePool", convert_global_pool<false>, 1, 1},
      {"GlobalMaxPool", convert_global_pool<true>, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
