#include "frontend/onnx/parts/windows.h"

#include <algorithm>

#include "base/printable.h"

namespace headrace::onnx {

namespace {

// ONNX Conv-11, auto_pad: the output has ceil(input / stride) positions; an odd element of padding goes to the end
// for SAME_UPPER, to the begin for SAME_LOWER.
void pad_same(NodeContext& context, Windows& windows, bool upper) {
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t reach = (windows.kernel[i] - 1) * windows.dilations[i] + 1, stride = windows.strides[i];
    int64_t total = reach - 1;
    if (stride != 1) {
      const int64_t size = context.known_dim(context.input(0), 2 + i);
      total = std::max<int64_t>(((size + stride - 1) / stride - 1) * stride + reach - size, 0);
    }
    windows.pad_begin.push_back(upper ? total / 2 : total - total / 2);
    windows.pad_end.push_back(total - windows.pad_begin.back());
  }
}

void check_range(NodeContext& context, std::string_view name, const Shape& values, int64_t least) {
  for (const int64_t value : values) {
    if (value < least || value > INT32_MAX) context.invalid("'{}' has {}, which is out of range", name, value);
  }
}

}  // namespace

Shape Windows::padding() const {
  Shape all = pad_begin;
  all.insert(all.end(), pad_end.begin(), pad_end.end());
  return all;
}

size_t spatial_rank(NodeContext& context, size_t most) {
  const size_t rank = context.rank(context.input(0));
  if (rank < 3) context.invalid("its input has {} dimensions; it needs a batch, channels and one or more axes", rank);
  if (rank - 2 > most) {
    context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "{} spatial axes are not supported, only up to {}", rank - 2, most);
  }
  return rank - 2;
}

Shape read_sizes(NodeContext& context, std::string_view name, size_t count, int64_t otherwise) {
  const Shape values = context.ints_attr(name).value_or(Shape(count, otherwise));
  if (values.size() != count) {
    context.invalid("attribute '{}' has {} values for {} spatial axes", name, values.size(), count);
  }
  check_range(context, name, values, otherwise);
  return values;
}

Shape read_kernel_shape(NodeContext& context) {
  const auto kernel = context.ints_attr("kernel_shape");
  if (!kernel) context.invalid("attribute 'kernel_shape' is missing");
  return *kernel;
}

Windows read_windows(NodeContext& context, Shape kernel) {
  const size_t count = context.rank(context.input(0)) - 2;
  if (kernel.size() != count) context.invalid("the kernel has {} axes for {} spatial axes", kernel.size(), count);
  Windows windows{.kernel = std::move(kernel),
                  .strides = read_sizes(context, "strides", count, 1),
                  .dilations = read_sizes(context, "dilations", count, 1),
                  .pad_begin = {},
                  .pad_end = {}};
  check_range(context, "kernel_shape", windows.kernel, 1);
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  const Shape pads = context.ints_attr("pads").value_or(Shape(2 * count, 0));
  check_range(context, "pads", pads, 0);
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    pad_same(context, windows, auto_pad == "SAME_UPPER");
  } else if (auto_pad == "VALID") {
    windows.pad_begin = windows.pad_end = Shape(count, 0);
  } else if (auto_pad == "NOTSET" || auto_pad.empty()) {
    if (pads.size() != 2 * count) context.invalid("attribute 'pads' has {} values for {} axes", pads.size(), count);
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(count);
    windows.pad_begin.assign(pads.begin(), middle);
    windows.pad_end.assign(middle, pads.end());
  } else {
    context.invalid("attribute 'auto_pad' is {}, which is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID",
                    printable(auto_pad));
  }
  return windows;
}

}  // namespace headrace::onnx
