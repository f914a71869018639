#include "ops/conv.h"

#include "ops/dims.h"
#include "ops/element.h"
#include "ops/families.h"
#include "ops/index.h"
#include "ops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

void Conv2DAttrs::fields(FieldList<Conv2DAttrs>& f) {
  f.field<&Conv2DAttrs::strides>("strides", {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
      .field<&Conv2DAttrs::padding>(
          "padding",
          {.default_value = Shape{0, 0}, .has_default = true, .doc = "all; height, width; or top, left, bottom, right"})
      .field<&Conv2DAttrs::dilation>("dilation",
                                     {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
      .field<&Conv2DAttrs::groups>(
          "groups", {.default_value = 1, .has_default = true, .doc = "the channels split into so many convolutions"})
      .field<&Conv2DAttrs::channels>(
          "channels", {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
      .field<&Conv2DAttrs::kernel_size>(
          "kernel_size", {.optional = true, .default_value = Value(), .has_default = true, .doc = "height, width"})
      .field<&Conv2DAttrs::data_layout>("data_layout",
                                        {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
      .field<&Conv2DAttrs::kernel_layout>("kernel_layout",
                                          {.default_value = "OIHW", .has_default = true, .doc = "an order of O I H W"})
      .field<&Conv2DAttrs::out_layout>("out_layout",
                                       {.default_value = "", .has_default = true, .doc = "empty: as data_layout"})
      .field<&Conv2DAttrs::out_dtype>(
          "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

void Conv2DTransposeAttrs::fields(FieldList<Conv2DTransposeAttrs>& f) {
  using A = Conv2DTransposeAttrs;
  f.field<&A::channels>("channels",
                        {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
      .field<&A::kernel_size>("kernel_size",
                              {.optional = true, .default_value = Value(), .has_default = true, .doc = "height, width"})
      .field<&A::strides>("strides", {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
      .field<&A::output_padding>("output_padding", {.default_value = Shape{0, 0},
                                                    .has_default = true,
                                                    .doc = "rows and columns added at the end; below the stride"})
      .field<&A::padding>("padding", {.default_value = Shape{0, 0},
                                      .has_default = true,
                                      .doc = "cut off the result: all; height, width; or top, left, bottom, right"})
      .field<&A::dilation>("dilation", {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
      .field<&A::groups>(
          "groups", {.default_value = 1, .has_default = true, .doc = "the channels split into so many convolutions"})
      .field<&A::data_layout>("data_layout",
                              {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
      .field<&A::kernel_layout>(
          "kernel_layout",
          {.default_value = "IOHW", .has_default = true, .doc = "an order of I O H W; I is the data's channels"})
      .field<&A::out_layout>("out_layout", {.default_value = "", .has_default = true, .doc = "empty: as data_layout"})
      .field<&A::out_dtype>("out_dtype",
                            {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

namespace {

std::string_view out_layout_of(const std::string& out_layout, const std::string& data_layout) {
  return out_layout.empty() ? data_layout : out_layout;
}

void check_rank4(const RelationInput& input, const TensorType& type, std::string_view what, std::string_view layout) {
  if (type->shape.size() == 4) return;
  input.fail(fmt::format("{} must have 4 dimensions ({}), got {}", what, layout, show(type)));
}

// Fails unless integer `size` is a multiple of `groups`.
void check_divides(const RelationInput& input, const PrimExpr& size, int64_t groups, std::string_view what) {
  const auto known = as_int(size);
  if (known && *known % groups != 0) {
    input.fail(fmt::format("{} ({}) must be a multiple of groups ({})", what, *known, groups));
  }
}

// What both convolutions check, and what their relations compute with.
struct ConvShapes {
  std::vector<PrimExpr> data;    // N C H W
  std::vector<PrimExpr> weight;  // first letters of the kernel's layout, H W
  std::vector<int64_t> kernel;   // H W
  std::vector<size_t> out_axes;  // of N C H W
  Window window;
  DataType dtype;
};

template <typename A>
ConvShapes check_conv(const RelationInput& input, const TensorType& data, const TensorType& weight,
                      std::string_view kernel_letters) {
  const A& attrs = input.call.attrs_as<A>();
  check_rank4(input, data, "data", attrs.data_layout);
  check_rank4(input, weight, "weight", attrs.kernel_layout);
  check_same_dtype(input, data, weight, "weight");
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  check_out_dtype(input, attrs.out_dtype.value_or(data->dtype), data->dtype);
  ConvShapes shapes;
  shapes.data = from_layout(data->shape, layout_axes(input, "data_layout", attrs.data_layout, "NCHW"));
  shapes.weight = from_layout(weight->shape, layout_axes(input, "kernel_layout", attrs.kernel_layout, kernel_letters));
  shapes.out_axes = layout_axes(input, "out_layout", out_layout_of(attrs.out_layout, attrs.data_layout), "NCHW");
  shapes.window = make_window(input, 2, attrs.strides, attrs.padding, attrs.dilation);
  shapes.dtype = attrs.out_dtype.value_or(data->dtype);
  check_sizes(input, "groups", {attrs.groups}, 1, 1);
  if (attrs.kernel_size) check_sizes(input, "kernel_size", *attrs.kernel_size, 2, 1);
  for (size_t i = 0; i < 2; ++i) {
    const auto known = as_int(shapes.weight[2 + i]);
    if (!known && !attrs.kernel_size)
      input.fail(fmt::format("the kernel size must be known, weight is {}", show(weight)));
    const int64_t size = known ? *known : (*attrs.kernel_size)[i];
    if (attrs.kernel_size && (*attrs.kernel_size)[i] != size) {
      input.fail(fmt::format("kernel_size ({}) does not agree with weight {} in layout {}",
                             fmt::join(*attrs.kernel_size, ", "), show(weight), attrs.kernel_layout));
    }
    check_sizes(input, "the kernel's size", {size}, 1, 1);
    shapes.kernel.push_back(size);
  }
  return shapes;
}

// Fails unless the weight's input channels are the data's.
void check_channels(const RelationInput& input, const PrimExpr& expected, const PrimExpr& got, const TensorType& data,
                    const TensorType& weight, int64_t groups) {
  if (unify_dims(expected, got)) return;
  input.fail(fmt::format("weight must have {} input channels, got {} (data {}, weight {}, groups {})",
                         to_string(expected), to_string(got), show(data), show(weight), groups));
}

void check_out_channels(const RelationInput& input, std::optional<int64_t> channels, const PrimExpr& got) {
  const auto known = as_int(got);
  if (channels && known && *channels != *known) {
    input.fail(fmt::format("channels is {}, but the weight gives {}", *channels, *known));
  }
}

PrimExpr over(const PrimExpr& dim, int64_t groups) { return groups == 1 ? dim : floor_div(dim, make_int(groups)); }

// The weight that nobody wrote, from the attributes: `first` and `second` are the sizes of its first two letters.
template <typename A>
void assume_weight(const RelationInput& input, const A& attrs, DataType dtype, std::string_view letters, PrimExpr first,
                   PrimExpr second) {
  if (!attrs.kernel_size || attrs.kernel_size->size() != 2) return;
  std::vector<PrimExpr> dims{std::move(first), std::move(second), make_int((*attrs.kernel_size)[0]),
                             make_int((*attrs.kernel_size)[1])};
  const auto axes = layout_axes(input, "kernel_layout", attrs.kernel_layout, letters);
  input.assume(1, make_tensor_type(Array<PrimExpr>(to_layout(dims, axes)), dtype));
}

// The channels of data in its layout.
template <typename A>
PrimExpr channels_of(const RelationInput& input, const A& attrs, const TensorType& data) {
  check_rank4(input, data, "data", attrs.data_layout);
  return from_layout(data->shape, layout_axes(input, "data_layout", attrs.data_layout, "NCHW"))[1];
}

Type relate_conv2d(const RelationInput& input) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const auto& attrs = input.call.attrs_as<Conv2DAttrs>();
  if (data && !weight && attrs.channels && attrs.groups > 0)
    assume_weight(input, attrs, data->dtype, "OIHW", make_int(*attrs.channels),
                  over(channels_of(input, attrs, data), attrs.groups));
  if (!data || !weight) return {};
  const ConvShapes shapes = check_conv<Conv2DAttrs>(input, data, weight, "OIHW");
  check_divides(input, shapes.data[1], attrs.groups, "input channels");
  check_divides(input, shapes.weight[0], attrs.groups, "output channels");
  check_channels(input, over(shapes.data[1], attrs.groups), shapes.weight[1], data, weight, attrs.groups);
  check_out_channels(input, attrs.channels, shapes.weight[0]);
  std::vector<PrimExpr> out{shapes.data[0], shapes.weight[0]};
  for (size_t i = 0; i < 2; ++i) {
    out.push_back(window_count(input, shapes.window, i, shapes.data[2 + i], shapes.kernel[i]));
  }
  return make_tensor_type(Array<PrimExpr>(to_layout(out, shapes.out_axes)), shapes.dtype);
}

Type relate_conv2d_transpose(const RelationInput& input) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const auto& attrs = input.call.attrs_as<Conv2DTransposeAttrs>();
  if (data && !weight && attrs.channels && attrs.groups > 0)
    assume_weight(input, attrs, data->dtype, "IOHW", channels_of(input, attrs, data),
                  make_int(*attrs.channels / attrs.groups));
  if (!data || !weight) return {};
  const ConvShapes shapes = check_conv<Conv2DTransposeAttrs>(input, data, weight, "IOHW");
  const Window& window = shapes.window;
  check_divides(input, shapes.data[1], attrs.groups, "input channels");
  check_channels(input, shapes.data[1], shapes.weight[0], data, weight, attrs.groups);
  check_sizes(input, "output_padding", attrs.output_padding, 2, 0);
  const PrimExpr channels = shapes.weight[1] * attrs.groups;
  check_out_channels(input, attrs.channels, channels);
  std::vector<PrimExpr> out{shapes.data[0], channels};
  for (size_t i = 0; i < 2; ++i) {
    if (attrs.output_padding[i] >= std::max(window.strides[i], window.dilation[i])) {
      input.fail(fmt::format("output_padding ({}) must be below the stride or the dilation",
                             fmt::join(attrs.output_padding, ", ")));
    }
    const int64_t reach = (shapes.kernel[i] - 1) * window.dilation[i] + 1;
    const int64_t extra = reach + attrs.output_padding[i] - window.pad_begin[i] - window.pad_end[i];
    const PrimExpr size = add_const(shapes.data[2 + i] * window.strides[i], extra - window.strides[i]);
    if (const auto known = as_int(size); known && *known < 0) {
      input.fail(fmt::format("padding ({}) cuts off more than spatial axis {} of the result has",
                             fmt::join(attrs.padding, ", "), i));
    }
    out.push_back(size);
  }
  return make_tensor_type(Array<PrimExpr>(to_layout(out, shapes.out_axes)), shapes.dtype);
}

// ---- eval

// Sizes and strides of the three tensors, in the order of the letters N C H W and O I H W (I O H W).
struct ConvView {
  Shape data, weight, out;
  Shape data_strides, weight_strides, out_strides;
  Window window;
  int64_t groups;
};

template <typename A>
ConvView view_conv(const EvalInput& input, const NDArray& out, std::string_view kernel_letters) {
  const A& attrs = input.attrs<A>();
  const auto data_axes = axes_of(attrs.data_layout, "NCHW");
  const auto weight_axes = axes_of(attrs.kernel_layout, kernel_letters);
  const auto out_axes = axes_of(out_layout_of(attrs.out_layout, attrs.data_layout), "NCHW");
  auto strides = [](const NDArray& array, const std::vector<size_t>& axes) {
    return from_layout(dense_strides(array.shape()), axes);
  };
  return {.data = from_layout(input.args[0].shape(), data_axes),
          .weight = from_layout(input.args[1].shape(), weight_axes),
          .out = from_layout(out.shape(), out_axes),
          .data_strides = strides(input.args[0], data_axes),
          .weight_strides = strides(input.args[1], weight_axes),
          .out_strides = strides(out, out_axes),
          .window = window_of(2, attrs.strides, attrs.padding, attrs.dilation),
          .groups = attrs.groups};
}

// out[n, k, p, q] = sum over c, r, s of data[n, group(k) + c, p * stride + r * dilation - pad, ...] * weight[k, c, r,
// s]
template <typename T>
Compute<T> conv_at(const ConvView& v, const Elements<T>& x, const Elements<T>& w, int64_t n, int64_t k, int64_t p,
                   int64_t q) {
  const Window& window = v.window;
  const int64_t first_channel = k / (v.out[1] / v.groups) * v.weight[1];
  const int64_t y0 = p * window.strides[0] - window.pad_begin[0], x0 = q * window.strides[1] - window.pad_begin[1];
  Compute<T> total = 0;
  for (int64_t c = 0; c < v.weight[1]; ++c) {
    const int64_t plane = n * v.data_strides[0] + (first_channel + c) * v.data_strides[1];
    const int64_t taps = k * v.weight_strides[0] + c * v.weight_strides[1];
    for (int64_t r = 0; r < v.weight[2]; ++r) {
      const int64_t row = y0 + r * window.dilation[0];
      if (row < 0 || row >= v.data[2]) continue;
      for (int64_t s = 0; s < v.weight[3]; ++s) {
        const int64_t column = x0 + s * window.dilation[1];
        if (column < 0 || column >= v.data[3]) continue;
        const auto a = x[plane + row * v.data_strides[2] + column * v.data_strides[3]];
        const auto b = w[taps + r * v.weight_strides[2] + s * v.weight_strides[3]];
        total = wrapping_add(total, wrapping_mul(a, b));
      }
    }
  }
  return total;
}

// As a gather: out[n, k, p, q] takes data[.., i, j] where i * stride + r * dilation - pad = p.
template <typename T>
Compute<T> conv_transpose_at(const ConvView& v, const Elements<T>& x, const Elements<T>& w, int64_t n, int64_t k,
                             int64_t p, int64_t q) {
  const Window& window = v.window;
  const int64_t group = k / v.weight[1], group_channels = v.data[1] / v.groups;
  Compute<T> total = 0;
  for (int64_t c = group * group_channels; c < (group + 1) * group_channels; ++c) {
    const int64_t plane = n * v.data_strides[0] + c * v.data_strides[1];
    const int64_t taps = c * v.weight_strides[0] + k % v.weight[1] * v.weight_strides[1];
    for (int64_t r = 0; r < v.weight[2]; ++r) {
      const int64_t y = p + window.pad_begin[0] - r * window.dilation[0];
      if (y < 0 || y % window.strides[0] != 0 || y / window.strides[0] >= v.data[2]) continue;
      for (int64_t s = 0; s < v.weight[3]; ++s) {
        const int64_t z = q + window.pad_begin[1] - s * window.dilation[1];
        if (z < 0 || z % window.strides[1] != 0 || z / window.strides[1] >= v.data[3]) continue;
        const auto a = x[plane + y / window.strides[0] * v.data_strides[2] + z / window.strides[1] * v.data_strides[3]];
        const auto b = w[taps + r * v.weight_strides[2] + s * v.weight_strides[3]];
        total = wrapping_add(total, wrapping_mul(a, b));
      }
    }
  }
  return total;
}

// Calls at(n, k, p, q) for every output element and stores what it gives.
template <typename T, typename F>
void fill(const ConvView& v, const Elements<T>& y, F&& at) {
  for (int64_t n = 0; n < v.out[0]; ++n) {
    for (int64_t k = 0; k < v.out[1]; ++k) {
      for (int64_t p = 0; p < v.out[2]; ++p) {
        for (int64_t q = 0; q < v.out[3]; ++q) {
          y.set(n * v.out_strides[0] + k * v.out_strides[1] + p * v.out_strides[2] + q * v.out_strides[3],
                at(n, k, p, q));
        }
      }
    }
  }
}

template <typename A, bool transposed>
std::vector<NDArray> eval_conv(const EvalInput& input) {
  const NDArray out = input.make_output();
  const ConvView view = view_conv<A>(input, out, transposed ? "IOHW" : "OIHW");
  const NDArray data = as_dtype(input.args[0], out.dtype()), weight = as_dtype(input.args[1], out.dtype());
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(data), w(weight), y(out);
    fill(view, y, [&](int64_t n, int64_t k, int64_t p, int64_t q) {
      return transposed ? conv_transpose_at(view, x, w, n, k, p, q) : conv_at(view, x, w, n, k, p, q);
    });
  });
  return {out};
}

}  // namespace

void register_conv_ops() {
  OpBuilder(
      "nn.conv2d",
      "2-D cross-correlation: data T[N,C,H,W], weight T[K,C/groups,R,S] -> out_dtype[N,K,P,Q] with P = (H + top + "
      "bottom - (R - 1) * dilation - 1) / stride + 1; layouts reorder each. Accumulates over c, r, s in out_dtype "
      "(float16 and bfloat16 in float32).")
      .arg("data")
      .arg("weight")
      .attrs<Conv2DAttrs>()
      .relation(relate_conv2d)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_conv<Conv2DAttrs, false>);
  OpBuilder(
      "nn.conv2d_transpose",
      "The gradient of nn.conv2d by its data: data T[N,C,H,W], weight T[C,K/groups,R,S] -> out_dtype[N,K,P,Q] with "
      "P = (H - 1) * stride - top - bottom + (R - 1) * dilation + 1 + output_padding.")
      .arg("data")
      .arg("weight")
      .attrs<Conv2DTransposeAttrs>()
      .relation(relate_conv2d_transpose)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_conv<Conv2DTransposeAttrs, true>);
}

Expr conv2d(Expr data, Expr weight, Conv2DAttrs attrs, Span span) {
  return relay::make_call("nn.conv2d", {std::move(data), std::move(weight)}, make_object<Conv2DAttrs>(std::move(attrs)),
                          std::move(span));
}

Expr conv2d_transpose(Expr data, Expr weight, Conv2DTransposeAttrs attrs, Span span) {
  return relay::make_call("nn.conv2d_transpose", {std::move(data), std::move(weight)},
                          make_object<Conv2DTransposeAttrs>(std::move(attrs)), std::move(span));
}

}  // namespace headrace::ops
