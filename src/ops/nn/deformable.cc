#include "ops/nn/deformable.h"

#include <algorithm>
#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "relay/expr.h"

namespace headrace::ops {

void DeformableConv2DAttrs::fields(FieldList<DeformableConv2DAttrs>& f) {
  using A = DeformableConv2DAttrs;
  f.field<&A::strides>("strides", {.default_value = Shape{1, 1},
                                   .has_default = true,
                                   .doc = "elements from one window to the next, for height and width"})
      .field<&A::padding>("padding", {.default_value = Shape{0, 0},
                                      .has_default = true,
                                      .doc = "zeros around each plane: one number, height and width, or top, left, "
                                             "bottom, right"})
      .field<&A::dilation>(
          "dilation",
          {.default_value = Shape{1, 1}, .has_default = true, .doc = "elements from one tap of a window to the next"})
      .field<&A::deformable_groups>(
          "deformable_groups",
          {.default_value = 1, .has_default = true, .doc = "the channels split into so many with offsets of their own"})
      .field<&A::groups>(
          "groups", {.default_value = 1, .has_default = true, .doc = "groups of channels, each convolved by itself"})
      .field<&A::channels>("channels",
                           {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
      .field<&A::kernel_size>(
          "kernel_size",
          {.optional = true, .default_value = Value(), .has_default = true, .doc = "height and width of the kernel"})
      .field<&A::data_layout>(
          "data_layout",
          {.default_value = "NCHW", .has_default = true, .doc = "an order of these letters, of data and offset"})
      .field<&A::kernel_layout>("kernel_layout",
                                {.default_value = "OIHW", .has_default = true, .doc = "an order of these letters"})
      .field<&A::out_layout>("out_layout", {.default_value = "", .has_default = true, .doc = "empty: as data_layout"})
      .field<&A::out_dtype>("out_dtype",
                            {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

namespace {

struct DeformableLayouts {
  Layout data, kernel, out;
  explicit DeformableLayouts(const DeformableConv2DAttrs& attrs)
      : data(Layout::parse(attrs.data_layout)),
        kernel(Layout::parse(attrs.kernel_layout)),
        out(Layout::parse(attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout)) {}
};

DeformableLayouts check_deformable(const RelationInput& input, const DeformableConv2DAttrs& attrs) {
  check_layout(input, "data_layout", attrs.data_layout, kDeformableData);
  check_layout(input, "kernel_layout", attrs.kernel_layout, kDeformableKernel);
  if (!attrs.out_layout.empty()) check_layout(input, "out_layout", attrs.out_layout, kDeformableData);
  check_sizes(input, "groups", {attrs.groups}, 1, 1);
  check_sizes(input, "deformable_groups", {attrs.deformable_groups}, 1, 1);
  if (attrs.kernel_size) check_sizes(input, "kernel_size", *attrs.kernel_size, 2, 1);
  return DeformableLayouts(attrs);
}

std::vector<PrimExpr> deformable_dims(const RelationInput& input, const TensorType& type, std::string_view what,
                                      const Layout& layout, std::string_view letters) {
  if (type->shape.size() != letters.size() || !type->dtype.is_float())
    input.fail(fmt::format("{} must be floats of {} dimensions ({}), got {}", what, letters.size(), layout.text(),
                           show(type)));
  return whole_dims(input, type->shape, layout, letters);
}

void check_dim(const RelationInput& input, std::string_view what, const PrimExpr& expected, const PrimExpr& got) {
  if (!unify_dims(expected, got))
    input.fail(fmt::format("{} must be {}, got {}", what, to_string(expected), to_string(got)));
}

// Fails unless the known number of channels is a multiple of the groups.
void check_groups(const RelationInput& input, std::string_view what, const PrimExpr& channels, int64_t groups) {
  const auto known = as_int(channels);
  if (known && *known % groups != 0)
    input.fail(fmt::format("{} is {}, which does not divide the {} channels", what, groups, *known));
}

// Gives an unannotated weight the type that the attributes say.
void assume_kernel(const RelationInput& input, const DeformableConv2DAttrs& attrs, const DeformableLayouts& layouts,
                   const TensorType& data) {
  if (!attrs.channels || !attrs.kernel_size) return;
  const PrimExpr inputs = deformable_dims(input, data, "data", layouts.data, kDeformableData)[1];
  const std::vector<PrimExpr> dims{make_int(*attrs.channels), floor_div(inputs, make_int(attrs.groups)),
                                   make_int((*attrs.kernel_size)[0]), make_int((*attrs.kernel_size)[1])};
  input.assume(2, make_tensor_type(dims_in_layout(input, dims, kDeformableKernel, layouts.kernel), data->dtype));
}

// Gives offset the type that data and the kernel determine.
void assume_offset(const RelationInput& input, const DeformableLayouts& layouts, const TensorType& data,
                   const std::vector<PrimExpr>& out, int64_t taps) {
  const int64_t groups = input.call.attrs_as<DeformableConv2DAttrs>().deformable_groups;
  const std::vector<PrimExpr> dims{out[0], make_int(2 * taps * groups), out[2], out[3]};
  input.assume(1, make_tensor_type(dims_in_layout(input, dims, kDeformableData, layouts.data), data->dtype));
}

void check_offset(const RelationInput& input, const DeformableLayouts& layouts, const TensorType& offset,
                  const std::vector<PrimExpr>& out, int64_t taps) {
  const int64_t groups = input.call.attrs_as<DeformableConv2DAttrs>().deformable_groups;
  const auto places = deformable_dims(input, offset, "offset", layouts.data, kDeformableData);
  for (size_t i = 2; i < 4; ++i) check_dim(input, "a plane's size of offset", out[i], places[i]);
  check_dim(input, "the batch of offset", out[0], places[0]);
  check_dim(input, "the channels of offset, two a tap,", make_int(2 * taps * groups), places[1]);
}

Type relate_deformable(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<DeformableConv2DAttrs>();
  const DeformableLayouts layouts = check_deformable(input, attrs);
  const Window window = make_window(input, 2, spread(attrs.strides, 2), attrs.padding, spread(attrs.dilation, 2));
  const TensorType data = input.tensor(0), offset = input.tensor(1), weight = input.tensor(2);
  if (data && !weight) assume_kernel(input, attrs, layouts, data);
  if (!data || !weight) return {};
  const auto x = deformable_dims(input, data, "data", layouts.data, kDeformableData);
  const auto kernel = deformable_dims(input, weight, "weight", layouts.kernel, kDeformableKernel);
  check_same_dtype(input, data, weight, "weight");
  if (offset) check_same_dtype(input, data, offset, "offset");
  check_out_dtype(input, attrs.out_dtype.value_or(data->dtype), data->dtype);
  check_groups(input, "groups", x[1], attrs.groups);
  check_groups(input, "groups", kernel[0], attrs.groups);
  check_groups(input, "deformable_groups", x[1], attrs.deformable_groups);
  check_dim(input, "the input channels of weight", floor_div(x[1], make_int(attrs.groups)), kernel[1]);
  if (attrs.channels) check_dim(input, "the output channels of weight", make_int(*attrs.channels), kernel[0]);
  std::vector<PrimExpr> out{x[0], kernel[0]};
  int64_t taps = 1;
  for (size_t i = 0; i < 2; ++i) {
    const auto size = as_int(kernel[2 + i]);
    if (!size || *size < 1) input.fail(fmt::format("the kernel's size must be known and 1 or more: {}", show(weight)));
    if (attrs.kernel_size) check_dim(input, "the kernel's size", make_int((*attrs.kernel_size)[i]), kernel[2 + i]);
    taps *= *size;
    out.push_back(window_count(input, window, i, x[2 + i], *size));
  }
  if (!offset) {
    assume_offset(input, layouts, data, out, taps);
    return {};
  }
  check_offset(input, layouts, offset, out, taps);
  return make_tensor_type(dims_in_layout(input, out, kDeformableData, layouts.out),
                          attrs.out_dtype.value_or(data->dtype));
}

// The neighbours of a coordinate along an axis, and how much the upper one counts. The upper neighbour of the last
// element is itself.
struct Neighbours {
  int64_t low, high;
  double part;
  Neighbours(double at, int64_t size)
      : low(static_cast<int64_t>(std::floor(at))), high(std::min(low + 1, size - 1)), part(at - std::floor(at)) {}
};

// Reads the element of a plane at fractional coordinates; zero unless 0 <= coordinate < size.
template <typename T>
double sample(const LetterView& view, const Elements<T>& x, int64_t plane, double row, double column) {
  const int64_t height = view.dims[2], width = view.dims[3];
  const bool is_inside =
      row >= 0 && row < static_cast<double>(height) && column >= 0 && column < static_cast<double>(width);
  if (!is_inside) return 0;
  const Neighbours y(row, height), c(column, width);
  const auto at = [&](int64_t i, int64_t j) { return static_cast<double>(x[plane + view.at(2, i) + view.at(3, j)]); };
  const double upper = at(y.low, c.low) * (1 - c.part) + at(y.low, c.high) * c.part;
  const double lower = at(y.high, c.low) * (1 - c.part) + at(y.high, c.high) * c.part;
  return upper * (1 - y.part) + lower * y.part;
}

// The operands of an evaluation.
struct DeformableView {
  const DeformableConv2DAttrs& attrs;
  LetterView data, offset, weight, out;
  Window window;
};

// Computes the result at [n, k, p, q].
template <typename T>
Compute<T> deformable_at(const DeformableView& v, const Elements<T>& x, const Elements<T>& offset, const Elements<T>& w,
                         const Shape& at) {
  const int64_t inputs = v.weight.dims[1], first = at[1] / (v.out.dims[1] / v.attrs.groups) * inputs;
  const int64_t per_offset = v.data.dims[1] / v.attrs.deformable_groups;
  double total = 0;
  const int64_t window = v.offset.at(0, at[0]) + v.offset.at(2, at[2]) + v.offset.at(3, at[3]);
  const int64_t kernel = v.weight.at(0, at[1]);
  for_each_index({inputs, v.weight.dims[2], v.weight.dims[3]}, [&](const Shape& r) {
    const int64_t channel = first + r[0], taps = v.weight.dims[2] * v.weight.dims[3];
    const int64_t pair = 2 * (channel / per_offset * taps + r[1] * v.weight.dims[3] + r[2]);
    double place[2];
    for (int64_t i = 0; i < 2; ++i) {
      const auto axis = static_cast<size_t>(i);
      const int64_t begin =
          at[2 + axis] * v.window.strides[axis] - v.window.pad_begin[axis] + r[1 + axis] * v.window.dilation[axis];
      place[axis] = static_cast<double>(begin) + static_cast<double>(offset[window + v.offset.at(1, pair + i)]);
    }
    const double element = sample(v.data, x, v.data.at(0, at[0]) + v.data.at(1, channel), place[0], place[1]);
    const int64_t tap = v.weight.at(1, r[0]) + v.weight.at(2, r[1]) + v.weight.at(3, r[2]);
    total += element * static_cast<double>(w[kernel + tap]);
  });
  return static_cast<Compute<T>>(total);
}

std::vector<NDArray> eval_deformable(const EvalInput& input) {
  const auto& attrs = input.attrs<DeformableConv2DAttrs>();
  const DeformableLayouts layouts(attrs);
  const NDArray out = input.make_output();
  std::vector<NDArray> args;
  for (const NDArray& arg : input.args) args.push_back(as_dtype(arg, out.dtype()));
  const DeformableView view{.attrs = attrs,
                            .data = LetterView(args[0].shape(), layouts.data, kDeformableData),
                            .offset = LetterView(args[1].shape(), layouts.data, kDeformableData),
                            .weight = LetterView(args[2].shape(), layouts.kernel, kDeformableKernel),
                            .out = LetterView(out.shape(), layouts.out, kDeformableData),
                            .window = deformable_window(attrs)};
  dispatch_float(out.dtype(), [&]<typename T>() {
    const Elements<T> x(args[0]), offset(args[1]), w(args[2]), y(out);
    for_each_index(view.out.dims, [&](const Shape& at) {
      input.spend(4 * view.weight.dims[1] * view.weight.dims[2] * view.weight.dims[3]);
      y.set(view.out.offset(at), deformable_at(view, x, offset, w, at));
    });
  });
  return {out};
}

}  // namespace

void register_deformable_ops() {
  OpBuilder(
      "nn.deformable_conv2d",
      "nn.conv2d whose taps are displaced by data: tap (r, s) of window (p, q) reads the data at its place plus "
      "offset[n, 2 * (d * R * S + r * S + s), p, q] rows and the next channel's columns, linearly between the four "
      "elements around, zero outside: data f[N,C,H,W], offset f[N,2*D*R*S,P,Q], weight f[K,C/groups,R,S] -> "
      "out_dtype[N,K,P,Q]; d is the channel's group of D = deformable_groups.")
      .arg("data", "Tensor", "f[N, C, H, W], or in data_layout: the image")
      .arg("offset", "Tensor",
           "f[N, 2 * deformable_groups * R * S, P, Q], or in data_layout: rows and columns of each tap")
      .arg("weight", "Tensor", "f[K, C / groups, R, S], or in kernel_layout: the kernel")
      .attrs<DeformableConv2DAttrs>()
      .relation(relate_deformable)
      .fusion(FusionKind::anchor)
      .level(5)
      .eval(eval_deformable);
}

}  // namespace headrace::ops
