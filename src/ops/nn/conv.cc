#include "ops/nn/conv.h"

#include <algorithm>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "ops/work.h"
#include "relay/expr.h"

namespace headrace::ops {

namespace {

std::string kernel_letters(size_t spatial, bool transposed) {
  return (transposed ? "IO" : "OI") + std::string(letters_of(spatial).substr(2));
}

// The fields below are listed in Relay's order, in which a transpose begins with other ones.
template <typename List>
void channel_fields(List& f) {
  f.template field<&ConvAttrs::channels>(
       "channels", {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
      .template field<&ConvAttrs::kernel_size>(
          "kernel_size",
          {.optional = true, .default_value = Value(), .has_default = true, .doc = "taps per spatial axis"});
}

template <typename List>
void stride_field(List& f, const ConvAttrs& usual) {
  f.template field<&ConvAttrs::strides>(
      "strides", {.default_value = usual.strides, .has_default = true, .doc = "per spatial axis"});
}

template <typename List>
void window_fields(List& f, const ConvAttrs& usual) {
  f.template field<&ConvAttrs::padding>(
       "padding", {.default_value = usual.padding,
                   .has_default = true,
                   .doc = fmt::format("{}one number for all; one per spatial axis; or all begins, then all ends",
                                      usual.transposed ? "cut off the result: " : "")})
      .template field<&ConvAttrs::dilation>(
          "dilation", {.default_value = usual.dilation, .has_default = true, .doc = "distance of taps"})
      .template field<&ConvAttrs::groups>(
          "groups", {.default_value = 1, .has_default = true, .doc = "groups of channels, each convolved by itself"});
}

template <typename List>
void layout_fields(List& f, const ConvAttrs& usual) {
  const bool in_parts = !usual.transposed;
  f.template field<&ConvAttrs::data_layout>(
       "data_layout",
       {.default_value = usual.data_layout,
        .has_default = true,
        .doc = in_parts ? fmt::format("an order of these letters, channels perhaps in parts: {}16c", usual.data_layout)
                        : "an order of these letters"})
      .template field<&ConvAttrs::kernel_layout>(
          "kernel_layout",
          {.default_value = usual.kernel_layout,
           .has_default = true,
           .doc = in_parts ? fmt::format("an order of these letters, perhaps {}16i16o", usual.kernel_layout)
                           : "an order of these letters; I is the data's channels"});
}

template <typename List>
void out_dtype_field(List& f) {
  f.template field<&ConvAttrs::out_dtype>(
      "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

}  // namespace

ConvAttrs::ConvAttrs(size_t spatial, bool transposed)
    : spatial(spatial),
      transposed(transposed),
      strides(spatial, 1),
      padding(spatial, 0),
      dilation(spatial, 1),
      output_padding(spatial, 0),
      data_layout(letters_of(spatial)),
      kernel_layout(kernel_letters(spatial, transposed)) {}

template <size_t rank, bool is_transpose>
void ConvAttrsOf<rank, is_transpose>::fields(FieldList<ConvAttrsOf>& f) {
  const ConvAttrs usual(rank, is_transpose);
  if (is_transpose) channel_fields(f);
  stride_field(f, usual);
  if constexpr (is_transpose)
    f.template field<&ConvAttrs::output_padding>(
        "output_padding",
        {.default_value = usual.output_padding, .has_default = true, .doc = "elements added at the end of each axis"});
  window_fields(f, usual);
  if (!is_transpose) channel_fields(f);
  layout_fields(f, usual);
  f.template field<&ConvAttrs::out_layout>("out_layout",
                                           {.default_value = "", .has_default = true, .doc = "empty: as data_layout"});
  out_dtype_field(f);
}

void Conv2DBackwardWeightAttrs::fields(FieldList<Conv2DBackwardWeightAttrs>& f) {
  const Conv2DBackwardWeightAttrs usual;
  stride_field(f, usual);
  window_fields(f, usual);
  channel_fields(f);
  f.field<&ConvAttrs::out_layout>(
      "grad_layout", {.default_value = usual.out_layout, .has_default = true, .doc = "as data_layout, of grad"});
  layout_fields(f, usual);
  out_dtype_field(f);
}

ConvForm conv_form(const ConvAttrs& attrs) {
  return {.letters = std::string(letters_of(attrs.spatial)),
          .kernel_letters = kernel_letters(attrs.spatial, attrs.transposed),
          .data_layout = attrs.data_layout,
          .kernel_layout = attrs.kernel_layout,
          .out_layout = attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout,
          .strides = spread(attrs.strides, attrs.spatial),
          .padding = attrs.padding,
          .dilation = spread(attrs.dilation, attrs.spatial),
          .output_padding = spread(attrs.output_padding, attrs.spatial),
          .groups = attrs.groups};
}

namespace {

// Returns `type` in `layout` as whole dimensions, in the order of the letters.
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

// Checks attributes before the weight's type is needed, so that a wrong attribute is reported and not an unknown
// weight.
void check_attrs(const RelationInput& input, const ConvAttrs& attrs, const ConvForm& form) {
  check_layout(input, "data_layout", form.data_layout, form.letters, form.in_parts());
  check_layout(input, "kernel_layout", form.kernel_layout, form.kernel_letters, form.in_parts());
  check_layout(input, "out_layout", form.out_layout, form.letters, form.in_parts());
  make_window(input, form.spatial(), form.strides, form.padding, form.dilation);
  check_sizes(input, "groups", {attrs.groups}, 1, 1);
  if (attrs.kernel_size) check_sizes(input, "kernel_size", *attrs.kernel_size, form.spatial(), 1);
}

// The shapes that all convolutions check and that their relations compute with.
struct ConvShapes {
  std::vector<PrimExpr> data;    // N C H W
  std::vector<PrimExpr> weight;  // first letters of the kernel's layout, H W
  std::vector<int64_t> kernel;   // H W
  Layout out_layout;
  Window window;
  DataType dtype;
};

// Returns the kernel's sizes: the weight's, or where they are not known the attribute's, which must agree.
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

ConvShapes check_conv(const RelationInput& input, const TensorType& data, const TensorType& weight,
                      const ConvForm& form) {
  const auto& attrs = input.call.attrs_as<ConvAttrs>();
  const Layout data_layout = check_layout(input, "data_layout", form.data_layout, form.letters, form.in_parts());
  const Layout kernel_layout =
      check_layout(input, "kernel_layout", form.kernel_layout, form.kernel_letters, form.in_parts());
  ConvShapes shapes;
  shapes.data = check_dims(input, data, "data", data_layout, form.letters);
  shapes.weight = check_dims(input, weight, "weight", kernel_layout, form.kernel_letters);
  shapes.out_layout = check_layout(input, "out_layout", form.out_layout, form.letters, form.in_parts());
  check_factor_dtypes(input, data, weight, "weight");
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

// Assumes the type of an unannotated weight from the attributes: `first` and `second` are the sizes of its first two
// letters.
void assume_weight(const RelationInput& input, const ConvAttrs& attrs, const ConvForm& form, DataType dtype,
                   PrimExpr first, PrimExpr second) {
  if (!attrs.kernel_size) return;
  std::vector<PrimExpr> dims{std::move(first), std::move(second)};
  for (const int64_t size : *attrs.kernel_size) dims.push_back(make_int(size));
  const Layout layout = check_layout(input, "kernel_layout", form.kernel_layout, form.kernel_letters, form.in_parts());
  input.assume(1, make_tensor_type(dims_in_layout(input, dims, form.kernel_letters, layout), dtype));
}

// Returns the channels of data in its layout.
PrimExpr channels_of(const RelationInput& input, const ConvForm& form, const TensorType& data) {
  const Layout layout = check_layout(input, "data_layout", form.data_layout, form.letters, form.in_parts());
  return check_dims(input, data, "data", layout, form.letters)[1];
}

Type relate_conv(const RelationInput& input) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const auto& attrs = input.call.attrs_as<ConvAttrs>();
  const ConvForm form = conv_form(attrs);
  check_attrs(input, attrs, form);
  if (data && !weight && attrs.channels)
    assume_weight(input, attrs, form, data->dtype, make_int(*attrs.channels),
                  over(channels_of(input, form, data), attrs.groups));
  if (!data || !weight) return {};
  const ConvShapes shapes = check_conv(input, data, weight, form);
  check_divides(input, shapes.data[1], attrs.groups, "input channels");
  check_divides(input, shapes.weight[0], attrs.groups, "output channels");
  check_channels(input, over(shapes.data[1], attrs.groups), shapes.weight[1], data, weight, attrs.groups);
  check_out_channels(input, attrs.channels, shapes.weight[0]);
  std::vector<PrimExpr> out{shapes.data[0], shapes.weight[0]};
  for (size_t i = 0; i < attrs.spatial; ++i) {
    out.push_back(window_count(input, shapes.window, i, shapes.data[2 + i], shapes.kernel[i]));
  }
  return make_tensor_type(dims_in_layout(input, out, form.letters, shapes.out_layout), shapes.dtype);
}

// Returns the size of spatial axis i of a transpose's result.
PrimExpr grown_size(const RelationInput& input, const ConvForm& form, const ConvShapes& shapes, size_t i) {
  const Window& window = shapes.window;
  const int64_t reach = (shapes.kernel[i] - 1) * window.dilation[i] + 1;
  const int64_t extra = reach + form.output_padding[i] - window.pad_begin[i] - window.pad_end[i];
  const PrimExpr size = add_const(shapes.data[2 + i] * window.strides[i], extra - window.strides[i]);
  if (const auto known = as_int(size); known && *known < 0) {
    input.fail(fmt::format("padding ({}) cuts off more than spatial axis {} of the result has",
                           fmt::join(form.padding, ", "), i));
  }
  return size;
}

Type relate_conv_transpose(const RelationInput& input) {
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  const auto& attrs = input.call.attrs_as<ConvAttrs>();
  const ConvForm form = conv_form(attrs);
  check_attrs(input, attrs, form);
  if (data && !weight && attrs.channels)
    assume_weight(input, attrs, form, data->dtype, channels_of(input, form, data),
                  make_int(*attrs.channels / attrs.groups));
  if (!data || !weight) return {};
  const ConvShapes shapes = check_conv(input, data, weight, form);
  check_divides(input, shapes.data[1], attrs.groups, "input channels");
  check_channels(input, shapes.data[1], shapes.weight[0], data, weight, attrs.groups);
  check_sizes(input, "output_padding", form.output_padding, attrs.spatial, 0);
  const PrimExpr channels = shapes.weight[1] * attrs.groups;
  check_out_channels(input, attrs.channels, channels);
  std::vector<PrimExpr> out{shapes.data[0], channels};
  for (size_t i = 0; i < attrs.spatial; ++i) out.push_back(grown_size(input, form, shapes, i));
  return make_tensor_type(dims_in_layout(input, out, form.letters, shapes.out_layout), shapes.dtype);
}

// Fails unless the gradient `grad` is as large as the result of the convolution of `data`, both by letters.
void check_gradient(const RelationInput& input, const ConvForm& form, const Shape& kernel,
                    const std::vector<PrimExpr>& grad, const std::vector<PrimExpr>& data) {
  const Window window = make_window(input, form.spatial(), form.strides, form.padding, form.dilation);
  std::vector<PrimExpr> expected{data[0], grad[1]};
  for (size_t i = 0; i < form.spatial(); ++i)
    expected.push_back(window_count(input, window, i, data[2 + i], kernel[i]));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!unify_dims(expected[i], grad[i]))
      input.fail(fmt::format("grad must have {} elements along {}, as the convolution's result has, got {}",
                             to_string(expected[i]), form.letters[i], to_string(grad[i])));
  }
}

// Returns the taps along spatial axis i where no attribute says them: as many as make the convolution's result as large
// as `grad`. With strides above one several numbers may.
int64_t infer_taps(const RelationInput& input, const ConvForm& form, size_t i, const PrimExpr& grad,
                   const PrimExpr& data) {
  const auto count = as_int(grad), size = as_int(data);
  const char letter = form.letters[2 + i];
  if (!count || !size)
    input.fail(fmt::format("kernel_size must be given: the sizes of grad and data along {} do not tell it", letter));
  const Window window = window_of(form.spatial(), form.strides, form.padding, form.dilation);
  const int64_t padded = *size + window.pad_begin[i] + window.pad_end[i];
  const int64_t stride = window.strides[i], distance = window.dilation[i];
  // Before the product, which may be large: whether the last window begins inside.
  const bool may_fit = *count >= 1 && padded >= 1 && *count - 1 <= (padded - 1) / stride;
  const int64_t longest = may_fit ? padded - (*count - 1) * stride : 0,
                shortest = std::max<int64_t>(1, longest - stride + 1);
  const int64_t most = (longest + distance - 1) / distance, least = (shortest + distance - 2) / distance + 1;
  if (most < least)
    input.fail(
        fmt::format("no kernel_size gives grad's {} elements along {}, where data has {}", *count, letter, *size));
  if (most > least)
    input.fail(fmt::format("kernel_size must be given: along {}, {} to {} taps fit the sizes of grad and data", letter,
                           least, most));
  return most;
}

Type relate_backward_weight(const RelationInput& input) {
  const TensorType grad = input.tensor(0), data = input.tensor(1);
  if (!grad || !data) return {};
  const auto& attrs = input.call.attrs_as<ConvAttrs>();
  const ConvForm form = conv_form(attrs);
  const Layout grad_layout = check_layout(input, "grad_layout", form.out_layout, form.letters, form.in_parts());
  check_attrs(input, attrs, form);
  const auto g = check_dims(input, grad, "grad", grad_layout, form.letters);
  const auto x = check_dims(input, data, "data", Layout::parse(form.data_layout), form.letters);
  check_same_dtype(input, data, grad, "grad");
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  const DataType dtype = attrs.out_dtype.value_or(data->dtype);
  check_out_dtype(input, dtype, data->dtype);
  check_divides(input, x[1], attrs.groups, "input channels");
  check_divides(input, g[1], attrs.groups, "output channels");
  if (attrs.channels && !unify_dims(make_int(*attrs.channels), g[1]))
    input.fail(fmt::format("channels is {}, but grad has {}", *attrs.channels, to_string(g[1])));
  Shape kernel = attrs.kernel_size.value_or(Shape());
  for (size_t i = kernel.size(); i < form.spatial(); ++i)
    kernel.push_back(infer_taps(input, form, i, g[2 + i], x[2 + i]));
  check_gradient(input, form, kernel, g, x);
  std::vector<PrimExpr> out{g[1], over(x[1], attrs.groups)};
  for (const int64_t size : kernel) out.push_back(make_int(size));
  return make_tensor_type(dims_in_layout(input, out, form.kernel_letters, Layout::parse(form.kernel_layout)), dtype);
}

// ---- eval

// The three tensors by the letters N C D H W and O I D H W (I O D H W); depth and height are 1 where there are none.
struct ConvView {
  LetterView data, weight, out;
  Window window;
  int64_t groups;
};

ConvView view_conv(const ConvForm& form, const NDArray& data, const NDArray& weight, const NDArray& out) {
  const size_t spatial = form.spatial(), missing = 3 - spatial;
  const auto view_of = [](const NDArray& array, const std::string& layout, std::string_view letters) {
    return LetterView(array.shape(), Layout::parse(layout), letters);
  };
  ConvView view{.data = view_of(data, form.data_layout, form.letters),
                .weight = view_of(weight, form.kernel_layout, form.kernel_letters),
                .out = view_of(out, form.out_layout, form.letters),
                .window = window_of(spatial, form.strides, form.padding, form.dilation),
                .groups = form.groups};
  for (LetterView* tensor : {&view.data, &view.weight, &view.out}) tensor->add_axes(2, missing);
  for (Shape* ones : {&view.window.strides, &view.window.dilation}) ones->insert(ones->begin(), missing, 1);
  for (Shape* pads : {&view.window.pad_begin, &view.window.pad_end}) pads->insert(pads->begin(), missing, 0);
  return view;
}

// Returns the position in the data, along an axis, of tap r of window p; nothing outside of the data.
std::optional<int64_t> forward_place(const ConvView& v, size_t axis, int64_t p, int64_t r) {
  const Window& w = v.window;
  const int64_t at = p * w.strides[axis] - w.pad_begin[axis] + r * w.dilation[axis];
  return at < 0 || at >= v.data.dims[2 + axis] ? std::nullopt : std::optional(at);
}

// Returns the element of the data that reaches result p through tap r.
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

// Computes out[n, k, at] = sum over c and taps of data[n, group(k) + c, at * stride + tap * dilation - pad] * weight[k,
// c, tap]. Padding zeros are multiplied like any element, so an infinite weight gives NaN there.
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

// Computes the gradient of that sum: the elements that reach the result.
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
void fill(const EvalInput& input, const ConvView& v, const Elements<T>& y, F&& at) {
  const int64_t steps = num_elements(v.weight.dims) / std::max<int64_t>(v.out.dims[1], 1);
  const Shape plane(v.out.dims.begin() + 2, v.out.dims.end());
  const double plane_steps = static_cast<double>(steps) * static_cast<double>(num_elements(plane));
  input.for_each_part(v.out.dims[0] * v.out.dims[1], plane_steps, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / v.out.dims[1], k = i % v.out.dims[1];
      for_each_index(plane, [&](const Shape& place) {
        input.spend(steps);
        y.set(v.out.offset({n, k, place[0], place[1], place[2]}),
              at(n, k, std::array<int64_t, 3>{place[0], place[1], place[2]}));
      });
    }
  });
}

std::vector<NDArray> eval_conv(const EvalInput& input) {
  const auto& attrs = input.attrs<ConvAttrs>();
  const NDArray out = input.make_output();
  const ConvView view = view_conv(conv_form(attrs), input.args[0], input.args[1], out);
  const NDArray data = as_dtype(input.args[0], out.dtype()), weight = as_dtype(input.args[1], out.dtype());
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(data), w(weight), y(out);
    fill(input, view, y, [&](int64_t n, int64_t k, const std::array<int64_t, 3>& at) {
      return attrs.transposed ? conv_transpose_at(view, x, w, n, k, at) : conv_at(view, x, w, n, k, at);
    });
  });
  return {out};
}

// Computes weight[k, c, tap] = sum over n and places of grad[n, k, place] * data[n, group(k) + c, position of the tap]
template <typename T>
Compute<T> weight_at(const ConvView& v, const Elements<T>& x, const Elements<T>& g, const Shape& weight) {
  const Shape& out = v.out.dims;
  const int64_t k = weight[0], channel = k / (out[1] / v.groups) * v.weight.dims[1] + weight[1];
  Compute<T> total = 0;
  for_each_index({out[0], out[2], out[3], out[4]}, [&](const Shape& place) {
    int64_t data = v.data.at(0, place[0]) + v.data.at(1, channel);
    int64_t grad = v.out.at(0, place[0]) + v.out.at(1, k);
    for (size_t i = 0; i < 3; ++i) {
      const auto at = forward_place(v, i, place[1 + i], weight[2 + i]);
      if (!at) return;
      data += v.data.at(2 + i, *at);
      grad += v.out.at(2 + i, place[1 + i]);
    }
    total = wrapping_add(total, wrapping_mul(x[data], g[grad]));
  });
  return total;
}

std::vector<NDArray> eval_backward_weight(const EvalInput& input) {
  const NDArray out = input.make_output();
  const ConvForm form = conv_form(input.attrs<ConvAttrs>());
  const ConvView view = view_conv(form, input.args[1], out, input.args[0]);
  const NDArray grad = as_dtype(input.args[0], out.dtype()), data = as_dtype(input.args[1], out.dtype());
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(data), g(grad), y(out);
    for_each_index(view.weight.dims, [&](const Shape& index) {
      constexpr int64_t kStepsOfATerm = 3;  // three axes are checked for each
      input.spend(kStepsOfATerm * grad.num_elements() / view.out.dims[1]);
      y.set(view.weight.offset(index), weight_at(view, x, g, index));
    });
  });
  return {out};
}

// Returns the size of the axis of a kernel that has this letter of its layout, with all its parts.
double axis_size(const TensorTypeNode& kernel, const Layout& layout, char letter) {
  double size = 1;
  for (const size_t axis : layout.positions(letter)) size *= size_of(kernel.shape[axis]);
  return size;
}

KernelKind kernel_kind(const ConvAttrs& attrs, double channels_a_group) {
  if (attrs.transposed) return KernelKind::transposed_conv;
  if (attrs.groups == 1) return KernelKind::conv;
  if (channels_a_group != 1) return KernelKind::grouped_conv;
  const bool has_steps =
      std::any_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t stride) { return stride > 1; });
  return has_steps ? KernelKind::strided_depthwise_conv : KernelKind::depthwise_conv;
}

// Each element of a convolution's result takes the elements of the kernel for one output channel, each element of a
// transposed one's data those for one input channel.
Work conv_work(const relay::CallNode& call) {
  const auto& attrs = call.attrs_as<ConvAttrs>();
  const auto& kernel = *call.args[1]->checked_type().as<TensorTypeNode>();
  const Layout layout = Layout::parse(conv_form(attrs).kernel_layout);
  const double channels = axis_size(kernel, layout, attrs.transposed ? 'I' : 'O');
  const double each = channels > 0 ? elements_of(kernel) / channels : 0;
  const Type& whole = attrs.transposed ? call.args[0]->checked_type() : call.checked_type();
  return {.operations = 2 * each * elements_of(whole), .kernel = kernel_kind(attrs, axis_size(kernel, layout, 'I'))};
}

// Each element of the incoming gradient takes the elements of the kernel for one output channel.
Work backward_weight_work(const relay::CallNode& call) {
  const auto& kernel = *call.checked_type().as<TensorTypeNode>();
  const Layout layout = Layout::parse(conv_form(call.attrs_as<ConvAttrs>()).kernel_layout);
  const double channels = axis_size(kernel, layout, 'O');
  const double each = channels > 0 ? elements_of(kernel) / channels : 0;
  return {.operations = 2 * each * elements_of(call.args[0]->checked_type())};
}

template <typename A>
void conv_op(OpBuilder op) {
  const char* weight = A().transposed ? "T[C, K / groups, ...], or in kernel_layout: the kernel"
                                      : "T[K, C / groups, ...], or in kernel_layout: the kernel";
  op.arg("data", "Tensor", "T[N, C, ...], numbers, or in data_layout: the image")
      .arg("weight", "Tensor", weight)
      .attrs<A>()
      .relation(A().transposed ? relate_conv_transpose : relate_conv)
      .fusion(FusionKind::anchor)
      .level(2)
      .fact(kWork, conv_work)
      .eval(eval_conv);
}

// Registers nn.conv1d and nn.conv3d, and their transposes.
template <size_t spatial>
void conv_ops_like_2d() {
  const std::string axes = spatial == 1 ? "W" : "D,H,W", taps = spatial == 1 ? "S" : "O,R,S";
  conv_op<ConvAttrsOf<spatial, false>>(
      OpBuilder(fmt::format("nn.conv{}d", spatial),
                fmt::format("nn.conv2d over {} spatial ax{}: data T[N,C,{}], weight T[K,C/groups,{}].", spatial,
                            spatial == 1 ? "is" : "es", axes, taps)));
  conv_op<ConvAttrsOf<spatial, true>>(
      OpBuilder(fmt::format("nn.conv{}d_transpose", spatial),
                fmt::format("nn.conv2d_transpose over {} spatial ax{}: data T[N,C,{}], weight T[C,K/groups,{}].",
                            spatial, spatial == 1 ? "is" : "es", axes, taps)));
}

}  // namespace

void register_conv_ops() {
  conv_op<Conv2DAttrs>(OpBuilder(
      "nn.conv2d",
      "2-D cross-correlation: data T[N,C,H,W], weight T[K,C/groups,R,S] -> out_dtype[N,K,P,Q] with P = (H + top + "
      "bottom - (R - 1) * dilation - 1) / stride + 1; layouts reorder each, and may split batch and channels "
      "(NCHW16c with OIHW16i16o). Accumulates over c, r, s in out_dtype (float16 and bfloat16 in float32)."));
  conv_op<Conv2DTransposeAttrs>(OpBuilder(
      "nn.conv2d_transpose",
      "The gradient of nn.conv2d by its data: data T[N,C,H,W], weight T[C,K/groups,R,S] -> out_dtype[N,K,P,Q] with "
      "P = (H - 1) * stride - top - bottom + (R - 1) * dilation + 1 + output_padding."));
  OpBuilder("nn.conv2d_backward_weight",
            "The gradient of nn.conv2d by its weight: grad T[N,K,P,Q], data T[N,C,H,W] -> out_dtype[K,C/groups,R,S], R "
            "and S being kernel_size, which may be left out where one only fits the sizes of grad and data.")
      .arg("grad", "Tensor", "T[N, K, P, Q], numbers: the gradient by the convolution's result")
      .arg("data", "Tensor", "T[N, C, H, W]: the convolution's image")
      .attrs<Conv2DBackwardWeightAttrs>()
      .relation(relate_backward_weight)
      .fusion(FusionKind::anchor)
      .level(2)
      .fact(kWork, backward_weight_work)
      .eval(eval_backward_weight);
  conv_ops_like_2d<1>();
  conv_ops_like_2d<3>();
}

Expr conv2d(Expr data, Expr weight, Conv2DAttrs attrs, Span span) {
  return relay::make_call("nn.conv2d", {std::move(data), std::move(weight)}, make_object<Conv2DAttrs>(std::move(attrs)),
                          std::move(span));
}

Expr conv2d_backward_weight(Expr grad, Expr data, Conv2DBackwardWeightAttrs attrs, Span span) {
  return relay::make_call("nn.conv2d_backward_weight", {std::move(grad), std::move(data)},
                          make_object<Conv2DBackwardWeightAttrs>(std::move(attrs)), std::move(span));
}

Expr conv2d_transpose(Expr data, Expr weight, Conv2DTransposeAttrs attrs, Span span) {
  return relay::make_call("nn.conv2d_transpose", {std::move(data), std::move(weight)},
                          make_object<Conv2DTransposeAttrs>(std::move(attrs)), std::move(span));
}

}  // namespace headrace::ops
