#include "ops/nn/conv.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
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
                                        {.default_value = "NCHW",
                                         .has_default = true,
                                         .doc = "an order of N C H W, channels perhaps in parts: NCHW16c"})
      .field<&Conv2DAttrs::kernel_layout>(
          "kernel_layout",
          {.default_value = "OIHW", .has_default = true, .doc = "an order of O I H W, perhaps OIHW16i16o"})
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

// `type` in `layout` as whole dimensions, in the order of the letters.
std::vector<PrimExpr> check_dims(const RelationInput& input, const TensorType& type, std::string_view what,
                                 const Layout& layout, std::string_view letters) {
  if (type->shape.size() != layout.rank()) {
    input.fail(fmt::format("{} must have {} dimensions ({}), got {}", what, layout.rank(), layout.text(), show(type)));
  }
  return whole_dims(input, type->shape, layout, letters);
}

// Fails unless integer `size` is a multiple of `groups`.
void check_divides(const RelationInput& input, const PrimExpr& size, int64_t groups, std::string_view what) {
  const auto known = as_int(size);
  if (known && *known % groups != 0) {
    input.fail(fmt::format("{} ({}) must be a multiple of groups ({})", what, *known, groups));
  }
}

// Before anything asks for the weight's type: a wrong attribute is told as such, not as a weight that nobody knows.
template <typename A>
void check_attrs(const RelationInput& input, const A& attrs, const ConvForm& form) {
  check_layout(input, "data_layout", form.data_layout, form.letters, form.in_parts());
  check_layout(input, "kernel_layout", form.kernel_layout, form.kernel_letters, form.in_parts());
  check_layout(input, "out_layout", form.out_layout, form.letters, form.in_parts());
  make_window(input, form.spatial(), form.strides, form.padding, form.dilation);
  check_sizes(input, "groups", {attrs.groups}, 1, 1);
  if (attrs.kernel_size) check_sizes(input, "kernel_size", *attrs.kernel_size, form.spatial(), 1);
}

// What all convolutions check, and what their relations compute with.
struct ConvShapes {
  std::vector<PrimExpr> data;    // N C H W
  std::vector<PrimExpr> weight;  // first letters of the kernel's layout, H W
  std::vector<int64_t> kernel;   // H W
  Layout out_layout;
  Window window;
  DataType dtype;
};

// The kernel's sizes: the weight's, or where they are not known the attribute's, which must agree.
std::vector<int64_t> check_kernel(const RelationInput& input, const TensorType& weight,
                                  const std::vector<PrimExpr>& dims, const std::optional<Shape>& kernel_size,
                                  const ConvForm& form) {
  std::vector<int64_t> kernel;
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
  const Layout data_layout = check_layout(input, "data_layout", form.data_layout, form.letters, form.in_parts());
  const Layout kernel_layout =
      check_layout(input, "kernel_layout", form.kernel_layout, form.kernel_letters, form.in_parts());
  ConvShapes shapes;
  shapes.data = check_dims(input, data, "data", data_layout, form.letters);
  shapes.weight = check_dims(input, weight, "weight", kernel_layout, form.kernel_letters);
  shapes.out_layout = check_layout(input, "out_layout", form.out_layout, form.letters, form.in_parts());
  check_same_dtype(input, data, weight, "weight");
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  check_out_dtype(input, attrs.out_dtype.value_or(data->dtype), data->dtype);
  shapes.window = make_window(input, form.spatial(), form.strides, form.padding, form.dilation);
  shapes.dtype = attrs.out_dtype.value_or(data->dtype);
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
  if (!attrs.kernel_size) return;
  std::vector<PrimExpr> dims{std::move(first), std::move(second)};
  for (const int64_t size : *attrs.kernel_size) dims.push_back(make_int(size));
  const Layout layout = check_layout(input, "kernel_layout", form.kernel_layout, form.kernel_letters, form.in_parts());
  input.assume(1, make_tensor_type(dims_in_layout(input, dims, form.kernel_letters, layout), dtype));
}

// The channels of data in its layout.
PrimExpr channels_of(const RelationInput& input, const ConvForm& form, const TensorType& data) {
  const Layout layout = check_layout(input, "data_layout", form.data_layout, form.letters, form.in_parts());
  return check_dims(input, data, "data", layout, form.letters)[1];
}

template <typename A>
Type relate_conv(const RelationInput& input, size_t spatial) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const A& attrs = input.call.attrs_as<A>();
  const ConvForm form = conv_form(attrs, spatial, false);
  check_attrs(input, attrs, form);
  if (data && !weight && attrs.channels)
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
  return make_tensor_type(dims_in_layout(input, out, form.letters, shapes.out_layout), shapes.dtype);
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
  check_attrs(input, attrs, form);
  if (data && !weight && attrs.channels)
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
  return make_tensor_type(dims_in_layout(input, out, form.letters, shapes.out_layout), shapes.dtype);
}

// ---- eval

// The three tensors by the letters N C D H W and O I D H W (I O D H W); depth and height are 1 where there are none.
struct ConvView {
  LetterView data, weight, out;
  Window window;
  int64_t groups;
};

ConvView view_conv(const EvalInput& input, const NDArray& out, const ConvForm& form) {
  const size_t spatial = form.spatial(), missing = 3 - spatial;
  const auto view_of = [](const NDArray& array, const std::string& layout, std::string_view letters) {
    return LetterView(array.shape(), Layout::parse(layout), letters);
  };
  ConvView view{.data = view_of(input.args[0], form.data_layout, form.letters),
                .weight = view_of(input.args[1], form.kernel_layout, form.kernel_letters),
                .out = view_of(out, form.out_layout, form.letters),
                .window = window_of(spatial, form.strides, form.padding, form.dilation),
                .groups = form.groups};
  for (LetterView* tensor : {&view.data, &view.weight, &view.out}) tensor->add_axes(2, missing);
  for (Shape* ones : {&view.window.strides, &view.window.dilation}) ones->insert(ones->begin(), missing, 1);
  for (Shape* pads : {&view.window.pad_begin, &view.window.pad_end}) pads->insert(pads->begin(), missing, 0);
  return view;
}

// Where along an axis of the data tap r of window p lies; nothing outside of it.
std::optional<int64_t> forward_place(const ConvView& v, size_t axis, int64_t p, int64_t r) {
  const Window& w = v.window;
  const int64_t at = p * w.strides[axis] - w.pad_begin[axis] + r * w.dilation[axis];
  return at < 0 || at >= v.data.dims[2 + axis] ? std::nullopt : std::optional(at);
}

// Which element of the data reaches result p through tap r.
std::optional<int64_t> backward_place(const ConvView& v, size_t axis, int64_t p, int64_t r) {
  const Window& w = v.window;
  const int64_t at = p + w.pad_begin[axis] - r * w.dilation[axis];
  if (at < 0 || at % w.strides[axis] != 0 || at / w.strides[axis] >= v.data.dims[2 + axis]) return std::nullopt;
  return at / w.strides[axis];
}

// Where a tap outside the data lies.
constexpr int64_t kOutside = -1;

// Calls body(offset in a plane of data, offset in a plane of weight) for the taps in order: those in the data, and with
// `outside` the others too.
template <bool outside, typename Place, typename F>
void for_each_tap(const ConvView& v, const std::array<int64_t, 3>& at, Place place, F&& body) {
  for (int64_t d = 0; d < v.weight.dims[2]; ++d) {
    const auto z = place(v, 0, at[0], d);
    if (!outside && !z) continue;
    for (int64_t r = 0; r < v.weight.dims[3]; ++r) {
      const auto y = place(v, 1, at[1], r);
      if (!outside && !y) continue;
      for (int64_t s = 0; s < v.weight.dims[4]; ++s) {
        const auto x = place(v, 2, at[2], s);
        if (!outside && !x) continue;
        const bool is_inside = z && y && x;
        body(is_inside ? v.data.at(2, *z) + v.data.at(3, *y) + v.data.at(4, *x) : kOutside,
             v.weight.at(2, d) + v.weight.at(3, r) + v.weight.at(4, s));
      }
    }
  }
}

// out[n, k, at] = sum over c and taps of data[n, group(k) + c, at * stride + tap * dilation - pad] * weight[k, c, tap]
// The padding is made of zeros, which are multiplied like any element: an infinite weight gives NaN there.
template <typename T>
Compute<T> conv_at(const ConvView& v, const Elements<T>& x, const Elements<T>& w, int64_t n, int64_t k,
                   const std::array<int64_t, 3>& at) {
  const int64_t channels = v.weight.dims[1], first_channel = k / (v.out.dims[1] / v.groups) * channels;
  Compute<T> total = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t plane = v.data.at(0, n) + v.data.at(1, first_channel + c);
    const int64_t taps = v.weight.at(0, k) + v.weight.at(1, c);
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
  const int64_t outputs = v.weight.dims[1], group = k / outputs, group_channels = v.data.dims[1] / v.groups;
  Compute<T> total = 0;
  for (int64_t c = group * group_channels; c < (group + 1) * group_channels; ++c) {
    const int64_t plane = v.data.at(0, n) + v.data.at(1, c);
    const int64_t taps = v.weight.at(0, c) + v.weight.at(1, k % outputs);
    for_each_tap<false>(v, at, backward_place, [&](int64_t data, int64_t tap) {
      total = wrapping_add(total, wrapping_mul(x[plane + data], w[taps + tap]));
    });
  }
  return total;
}

// Stores what at(n, k, place) gives for every element of the result.
template <typename T, typename F>
void fill(const ConvView& v, const Elements<T>& y, F&& at) {
  for_each_index(v.out.dims, [&](const Shape& index) {
    y.set(v.out.offset(index), at(index[0], index[1], std::array<int64_t, 3>{index[2], index[3], index[4]}));
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
          "bottom - (R - 1) * dilation - 1) / stride + 1; layouts reorder each, and may split batch and channels "
          "(NCHW16c with OIHW16i16o). Accumulates over c, r, s in out_dtype (float16 and bfloat16 in float32)."),
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
