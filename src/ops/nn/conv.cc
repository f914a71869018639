#include "ops/nn/conv.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index.h"
#include "ops/loops/window.h"
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

void ConvNDAttrs::fields(FieldList<ConvNDAttrs>& f) {
  using A = ConvNDAttrs;
  f.field<&A::strides>("strides", {.default_value = Shape{1}, .has_default = true, .doc = "all, or per spatial axis"})
      .field<&A::padding>(
          "padding",
          {.default_value = Shape{0}, .has_default = true, .doc = "all; per spatial axis; or begins, then ends"})
      .field<&A::dilation>("dilation", {.default_value = Shape{1}, .has_default = true, .doc = "distance of taps"})
      .field<&A::groups>(
          "groups", {.default_value = 1, .has_default = true, .doc = "the channels split into so many convolutions"})
      .field<&A::channels>("channels",
                           {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
      .field<&A::kernel_size>("kernel_size",
                              {.optional = true, .default_value = Value(), .has_default = true, .doc = "taps"})
      .field<&A::output_padding>(
          "output_padding",
          {.default_value = Shape{0}, .has_default = true, .doc = "of a transpose: elements added at the end"})
      .field<&A::data_layout>("data_layout", {.default_value = "", .has_default = true, .doc = "empty: NCW or NCDHW"})
      .field<&A::kernel_layout>(
          "kernel_layout",
          {.default_value = "", .has_default = true, .doc = "empty: OIW or OIDHW; IO.. of a transpose"})
      .field<&A::out_layout>("out_layout", {.default_value = "", .has_default = true, .doc = "empty: as data_layout"})
      .field<&A::out_dtype>("out_dtype",
                            {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

namespace {

template <typename A>
ConvForm make_form(const A& attrs, size_t spatial, bool transposed) {
  const std::string letters(letters_of(spatial)), kernel = (transposed ? "IO" : "OI") + letters.substr(2);
  const std::string data_layout = attrs.data_layout.empty() ? letters : attrs.data_layout;
  return {.letters = letters,
          .kernel_letters = kernel,
          .data_layout = data_layout,
          .kernel_layout = attrs.kernel_layout.empty() ? kernel : attrs.kernel_layout,
          .out_layout = attrs.out_layout.empty() ? data_layout : attrs.out_layout,
          .strides = attrs.strides,
          .padding = attrs.padding,
          .dilation = attrs.dilation,
          .output_padding = {},
          .groups = attrs.groups};
}

}  // namespace

ConvForm conv_form(const Conv2DAttrs& attrs, size_t, bool) { return make_form(attrs, 2, false); }

ConvForm conv_form(const Conv2DTransposeAttrs& attrs, size_t, bool) {
  ConvForm form = make_form(attrs, 2, true);
  form.output_padding = attrs.output_padding;
  return form;
}

ConvForm conv_form(const ConvNDAttrs& attrs, size_t spatial, bool transposed) {
  ConvForm form = make_form(attrs, spatial, transposed);
  form.output_padding = spread(attrs.output_padding, spatial);
  form.strides = spread(attrs.strides, spatial);
  form.dilation = spread(attrs.dilation, spatial);
  return form;
}

namespace {

void check_rank(const RelationInput& input, const TensorType& type, std::string_view what, std::string_view letters,
                std::string_view layout) {
  if (type->shape.size() == letters.size()) return;
  input.fail(fmt::format("{} must have {} dimensions ({}), got {}", what, letters.size(), layout, show(type)));
}

// Fails unless integer `size` is a multiple of `groups`.
void check_divides(const RelationInput& input, const PrimExpr& size, int64_t groups, std::string_view what) {
  const auto known = as_int(size);
  if (known && *known % groups != 0) {
    input.fail(fmt::format("{} ({}) must be a multiple of groups ({})", what, *known, groups));
  }
}

// What all convolutions check, and what their relations compute with.
struct ConvShapes {
  std::vector<PrimExpr> data;    // N C H W
  std::vector<PrimExpr> weight;  // first letters of the kernel's layout, H W
  std::vector<int64_t> kernel;   // H W
  std::vector<size_t> out_axes;  // of N C H W
  Window window;
  DataType dtype;
};

// The kernel's sizes: the weight's, or where they are not known the attribute's, which must agree.
std::vector<int64_t> check_kernel(const RelationInput& input, const TensorType& weight,
                                  const std::vector<PrimExpr>& dims, const std::optional<Shape>& kernel_size,
                                  const ConvForm& form) {
  std::vector<int64_t> kernel;
  if (kernel_size) check_sizes(input, "kernel_size", *kernel_size, form.spatial(), 1);
  for (size_t i = 0; i < form.spatial(); ++i) {
    const auto known = as_int(dims[2 + i]);
    if (!known && !kernel_size) input.fail(fmt::format("the kernel size must be known, weight is {}", show(weight)));
    const int64_t size = known ? *known : (*kernel_size)[i];
    if (kernel_size && (*kernel_size)[i] != size) {
      input.fail(fmt::format("kernel_size ({}) does not agree with weight {} in layout {}",
                             fmt::join(*kernel_size, ", "), show(weight), form.kernel_layout));
    }
    check_sizes(input, "the kernel's size", {size}, 1, 1);
    kernel.push_back(size);
  }
  return kernel;
}

template <typename A>
ConvShapes check_conv(const RelationInput& input, const TensorType& data, const TensorType& weight,
                      const ConvForm& form) {
  const A& attrs = input.call.attrs_as<A>();
  check_rank(input, data, "data", form.letters, form.data_layout);
  check_rank(input, weight, "weight", form.letters, form.kernel_layout);
  check_same_dtype(input, data, weight, "weight");
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  check_out_dtype(input, attrs.out_dtype.value_or(data->dtype), data->dtype);
  ConvShapes shapes;
  shapes.data = from_layout(data->shape, layout_axes(input, "data_layout", form.data_layout, form.letters));
  shapes.weight =
      from_layout(weight->shape, layout_axes(input, "kernel_layout", form.kernel_layout, form.kernel_letters));
  shapes.out_axes = layout_axes(input, "out_layout", form.out_layout, form.letters);
  shapes.window = make_window(input, form.spatial(), form.strides, form.padding, form.dilation);
  shapes.dtype = attrs.out_dtype.value_or(data->dtype);
  check_sizes(input, "groups", {attrs.groups}, 1, 1);
  shapes.kernel = check_kernel(input, weight, shapes.weight, attrs.kernel_size, form);
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
void assume_weight(const RelationInput& input, const A& attrs, const ConvForm& form, DataType dtype, PrimExpr first,
                   PrimExpr second) {
  if (!attrs.kernel_size || attrs.kernel_size->size() != form.spatial()) return;
  std::vector<PrimExpr> dims{std::move(first), std::move(second)};
  for (const int64_t size : *attrs.kernel_size) dims.push_back(make_int(size));
  const auto axes = layout_axes(input, "kernel_layout", form.kernel_layout, form.kernel_letters);
  input.assume(1, make_tensor_type(Array<PrimExpr>(to_layout(dims, axes)), dtype));
}

// The channels of data in its layout.
PrimExpr channels_of(const RelationInput& input, const ConvForm& form, const TensorType& data) {
  check_rank(input, data, "data", form.letters, form.data_layout);
  return from_layout(data->shape, layout_axes(input, "data_layout", form.data_layout, form.letters))[1];
}

template <typename A>
Type relate_conv(const RelationInput& input, size_t spatial) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const A& attrs = input.call.attrs_as<A>();
  const ConvForm form = conv_form(attrs, spatial, false);
  if (data && !weight && attrs.channels && attrs.groups > 0)
    assume_weight(input, attrs, form, data->dtype, make_int(*attrs.channels),
                  over(channels_of(input, form, data), attrs.groups));
  if (!data || !weight) return {};
  const ConvShapes shapes = check_conv<A>(input, data, weight, form);
  check_divides(input, shapes.data[1], attrs.groups, "input channels");
  check_divides(input, shapes.weight[0], attrs.groups, "output channels");
  check_channels(input, over(shapes.data[1], attrs.groups), shapes.weight[1], data, weight, attrs.groups);
  check_out_channels(input, attrs.channels, shapes.weight[0]);
  std::vector<PrimExpr> out{shapes.data[0], shapes.weight[0]};
  for (size_t i = 0; i < spatial; ++i) {
    out.push_back(window_count(input, shapes.window, i, shapes.data[2 + i], shapes.kernel[i]));
  }
  return make_tensor_type(Array<PrimExpr>(to_layout(out, shapes.out_axes)), shapes.dtype);
}

// The size of spatial axis i of a transpose's result.
PrimExpr grown_size(const RelationInput& input, const ConvForm& form, const ConvShapes& shapes, size_t i) {
  const Window& window = shapes.window;
  if (form.output_padding[i] >= std::max(window.strides[i], window.dilation[i])) {
    input.fail(fmt::format("output_padding ({}) must be below the stride or the dilation",
                           fmt::join(form.output_padding, ", ")));
  }
  const int64_t reach = (shapes.kernel[i] - 1) * window.dilation[i] + 1;
  const int64_t extra = reach + form.output_padding[i] - window.pad_begin[i] - window.pad_end[i];
  const PrimExpr size = add_const(shapes.data[2 + i] * window.strides[i], extra - window.strides[i]);
  if (const auto known = as_int(size); known && *known < 0) {
    input.fail(fmt::format("padding ({}) cuts off more than spatial axis {} of the result has",
                           fmt::join(form.padding, ", "), i));
  }
  return size;
}

template <typename A>
Type relate_conv_transpose(const RelationInput& input, size_t spatial) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const A& attrs = input.call.attrs_as<A>();
  const ConvForm form = conv_form(attrs, spatial, true);
  if (data && !weight && attrs.channels && attrs.groups > 0)
    assume_weight(input, attrs, form, data->dtype, channels_of(input, form, data),
                  make_int(*attrs.channels / attrs.groups));
  if (!data || !weight) return {};
  const ConvShapes shapes = check_conv<A>(input, data, weight, form);
  check_divides(input, shapes.data[1], attrs.groups, "input channels");
  check_channels(input, shapes.data[1], shapes.weight[0], data, weight, attrs.groups);
  check_sizes(input, "output_padding", form.output_padding, spatial, 0);
  const PrimExpr channels = shapes.weight[1] * attrs.groups;
  check_out_channels(input, attrs.channels, channels);
  std::vector<PrimExpr> out{shapes.data[0], channels};
  for (size_t i = 0; i < spatial; ++i) out.push_back(grown_size(input, form, shapes, i));
  return make_tensor_type(Array<PrimExpr>(to_layout(out, shapes.out_axes)), shapes.dtype);
}

// ---- eval

// Sizes and strides of the three tensors, in the order of the letters N C D H W and O I D H W (I O D H W); depth and
// height are 1 where there are none.
struct ConvView {
  Shape data, weight, out;
  Shape data_strides, weight_strides, out_strides;
  Window window;
  int64_t groups;
};

// `value` in front of the spatial axes until there are three.
void fill_axes(Shape& list, size_t first, size_t spatial, int64_t value) {
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(first), 3 - spatial, value);
}

ConvView view_conv(const EvalInput& input, const NDArray& out, const ConvForm& form) {
  const size_t spatial = form.spatial();
  const auto data_axes = axes_of(form.data_layout, form.letters), out_axes = axes_of(form.out_layout, form.letters),
             weight_axes = axes_of(form.kernel_layout, form.kernel_letters);
  auto strides = [](const NDArray& array, const std::vector<size_t>& axes) {
    return from_layout(dense_strides(array.shape()), axes);
  };
  ConvView view{.data = from_layout(input.args[0].shape(), data_axes),
                .weight = from_layout(input.args[1].shape(), weight_axes),
                .out = from_layout(out.shape(), out_axes),
                .data_strides = strides(input.args[0], data_axes),
                .weight_strides = strides(input.args[1], weight_axes),
                .out_strides = strides(out, out_axes),
                .window = window_of(spatial, form.strides, form.padding, form.dilation),
                .groups = form.groups};
  for (Shape* sizes : {&view.data, &view.weight, &view.out}) fill_axes(*sizes, 2, spatial, 1);
  for (Shape* steps : {&view.data_strides, &view.weight_strides, &view.out_strides}) fill_axes(*steps, 2, spatial, 0);
  for (Shape* ones : {&view.window.strides, &view.window.dilation}) fill_axes(*ones, 0, spatial, 1);
  for (Shape* pads : {&view.window.pad_begin, &view.window.pad_end}) fill_axes(*pads, 0, spatial, 0);
  return view;
}

// Where along an axis of the data tap r of window p lies; nothing outside of it.
std::optional<int64_t> forward_place(const ConvView& v, size_t axis, int64_t p, int64_t r) {
  const Window& w = v.window;
  const int64_t at = p * w.strides[axis] - w.pad_begin[axis] + r * w.dilation[axis];
  return at < 0 || at >= v.data[2 + axis] ? std::nullopt : std::optional(at);
}

// Which element of the data reaches result p through tap r.
std::optional<int64_t> backward_place(const ConvView& v, size_t axis, int64_t p, int64_t r) {
  const Window& w = v.window;
  const int64_t at = p + w.pad_begin[axis] - r * w.dilation[axis];
  if (at < 0 || at % w.strides[axis] != 0 || at / w.strides[axis] >= v.data[2 + axis]) return std::nullopt;
  return at / w.strides[axis];
}

// Where a tap outside the data lies.
constexpr int64_t kOutside = -1;

// Calls body(offset in a plane of data, offset in a plane of weight) for the taps in order: those in the data, and with
// `outside` the others too.
template <bool outside, typename Place, typename F>
void for_each_tap(const ConvView& v, const std::array<int64_t, 3>& at, Place place, F&& body) {
  for (int64_t d = 0; d < v.weight[2]; ++d) {
    const auto z = place(v, 0, at[0], d);
    if (!outside && !z) continue;
    for (int64_t r = 0; r < v.weight[3]; ++r) {
      const auto y = place(v, 1, at[1], r);
      if (!outside && !y) continue;
      for (int64_t s = 0; s < v.weight[4]; ++s) {
        const auto x = place(v, 2, at[2], s);
        if (!outside && !x) continue;
        const bool is_inside = z && y && x;
        body(is_inside ? *z * v.data_strides[2] + *y * v.data_strides[3] + *x * v.data_strides[4] : kOutside,
             d * v.weight_strides[2] + r * v.weight_strides[3] + s * v.weight_strides[4]);
      }
    }
  }
}

// out[n, k, at] = sum over c and taps of data[n, group(k) + c, at * stride + tap * dilation - pad] * weight[k, c, tap]
// The padding is made of zeros, which are multiplied like any element: an infinite weight gives NaN there.
template <typename T>
Compute<T> conv_at(const ConvView& v, const Elements<T>& x, const Elements<T>& w, int64_t n, int64_t k,
                   const std::array<int64_t, 3>& at) {
  const int64_t first_channel = k / (v.out[1] / v.groups) * v.weight[1];
  Compute<T> total = 0;
  for (int64_t c = 0; c < v.weight[1]; ++c) {
    const int64_t plane = n * v.data_strides[0] + (first_channel + c) * v.data_strides[1];
    const int64_t taps = k * v.weight_strides[0] + c * v.weight_strides[1];
    for_each_tap<true>(v, at, forward_place, [&](int64_t data, int64_t tap) {
      const Compute<T> element = data == kOutside ? Compute<T>(0) : x[plane + data];
      total = wrapping_add(total, wrapping_mul(element, w[taps + tap]));
    });
  }
  return total;
}

// The gradient of that: the elements that reach the result.
template <typename T>
Compute<T> conv_transpose_at(const ConvView& v, const Elements<T>& x, const Elements<T>& w, int64_t n, int64_t k,
                             const std::array<int64_t, 3>& at) {
  const int64_t group = k / v.weight[1], group_channels = v.data[1] / v.groups;
  Compute<T> total = 0;
  for (int64_t c = group * group_channels; c < (group + 1) * group_channels; ++c) {
    const int64_t plane = n * v.data_strides[0] + c * v.data_strides[1];
    const int64_t taps = c * v.weight_strides[0] + k % v.weight[1] * v.weight_strides[1];
    for_each_tap<false>(v, at, backward_place, [&](int64_t data, int64_t tap) {
      total = wrapping_add(total, wrapping_mul(x[plane + data], w[taps + tap]));
    });
  }
  return total;
}

// Stores what at(n, k, place) gives for every element of the result.
template <typename T, typename F>
void fill(const ConvView& v, const Elements<T>& y, F&& at) {
  for_each_offset<1>(v.out, {v.out_strides}, [&, index = Shape(5, 0)](const auto& offset) mutable {
    y.set(offset[0], at(index[0], index[1], std::array<int64_t, 3>{index[2], index[3], index[4]}));
    for (size_t i = 5; i-- > 0 && ++index[i] == v.out[i];) index[i] = 0;
  });
}

template <typename A>
EvalFn eval_conv(size_t spatial, bool transposed) {
  return [=](const EvalInput& input) {
    const NDArray out = input.make_output();
    const ConvView view = view_conv(input, out, conv_form(input.attrs<A>(), spatial, transposed));
    const NDArray data = as_dtype(input.args[0], out.dtype()), weight = as_dtype(input.args[1], out.dtype());
    dispatch_number(out.dtype(), [&]<typename T>() {
      const Elements<T> x(data), w(weight), y(out);
      fill(view, y, [&](int64_t n, int64_t k, const std::array<int64_t, 3>& at) {
        return transposed ? conv_transpose_at(view, x, w, n, k, at) : conv_at(view, x, w, n, k, at);
      });
    });
    return std::vector<NDArray>{out};
  };
}

template <typename A>
void conv_op(OpBuilder op, size_t spatial, bool transposed) {
  op.arg("data")
      .arg("weight")
      .attrs<A>()
      .relation([=](const RelationInput& input) {
        return transposed ? relate_conv_transpose<A>(input, spatial) : relate_conv<A>(input, spatial);
      })
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_conv<A>(spatial, transposed));
}

}  // namespace

void register_conv_ops() {
  conv_op<Conv2DAttrs>(
      OpBuilder(
          "nn.conv2d",
          "2-D cross-correlation: data T[N,C,H,W], weight T[K,C/groups,R,S] -> out_dtype[N,K,P,Q] with P = (H + top + "
          "bottom - (R - 1) * dilation - 1) / stride + 1; layouts reorder each. Accumulates over c, r, s in out_dtype "
          "(float16 and bfloat16 in float32)."),
      2, false);
  conv_op<Conv2DTransposeAttrs>(
      OpBuilder(
          "nn.conv2d_transpose",
          "The gradient of nn.conv2d by its data: data T[N,C,H,W], weight T[C,K/groups,R,S] -> out_dtype[N,K,P,Q] with "
          "P = (H - 1) * stride - top - bottom + (R - 1) * dilation + 1 + output_padding."),
      2, true);
  for (const size_t spatial : {1u, 3u}) {
    const std::string axes = spatial == 1 ? "W" : "D,H,W", taps = spatial == 1 ? "S" : "O,R,S";
    conv_op<ConvNDAttrs>(
        OpBuilder(fmt::format("nn.conv{}d", spatial),
                  fmt::format("nn.conv2d over {} spatial ax{}: data T[N,C,{}], weight T[K,C/groups,{}].", spatial,
                              spatial == 1 ? "is" : "es", axes, taps)),
        spatial, false);
    conv_op<ConvNDAttrs>(
        OpBuilder(fmt::format("nn.conv{}d_transpose", spatial),
                  fmt::format("nn.conv2d_transpose over {} spatial ax{}: data T[N,C,{}], weight T[C,K/groups,{}].",
                              spatial, spatial == 1 ? "is" : "es", axes, taps)),
        spatial, true);
  }
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
