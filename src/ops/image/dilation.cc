#include "ops/image/dilation.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

void Dilation2DAttrs::fields(FieldList<Dilation2DAttrs>& f) {
  using A = Dilation2DAttrs;
  f.field<&A::strides>("strides", {.default_value = Shape{1, 1},
                                   .has_default = true,
                                   .doc = "elements from one window to the next, for height and width"})
      .field<&A::padding>("padding", {.default_value = Shape{0, 0},
                                      .has_default = true,
                                      .doc = "zeros around each plane: one number, height and width, or top, left, "
                                             "bottom, right"})
      .field<&A::dilations>(
          "dilations",
          {.default_value = Shape{1, 1}, .has_default = true, .doc = "elements from one tap of a window to the next"})
      .field<&A::data_layout>("data_layout",
                              {.default_value = "NCHW", .has_default = true, .doc = "an order of these letters"})
      .field<&A::kernel_layout>("kernel_layout",
                                {.default_value = "IHW", .has_default = true, .doc = "an order of these letters"})
      .field<&A::out_dtype>("out_dtype",
                            {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

namespace {

std::vector<PrimExpr> dims_by_letters(const RelationInput& input, const TensorType& type, std::string_view what,
                                      const Layout& layout, std::string_view letters) {
  if (type->shape.size() != letters.size())
    input.fail(fmt::format("{} must have {} dimensions ({}), got {}", what, letters.size(), layout.text(), show(type)));
  return whole_dims(input, type->shape, layout, letters);
}

Type relate_dilation(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<Dilation2DAttrs>();
  const Layout layout = check_layout(input, "data_layout", attrs.data_layout, kDilationData);
  const Layout kernel_layout = check_layout(input, "kernel_layout", attrs.kernel_layout, kDilationKernel);
  check_sizes(input, "dilations", spread(attrs.dilations, 2), 2, 1);
  const Window window = make_window(input, 2, spread(attrs.strides, 2), attrs.padding, spread(attrs.dilations, 2));
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  if (!data || !weight) return {};
  const auto dims = dims_by_letters(input, data, "data", layout, kDilationData);
  const auto kernel = dims_by_letters(input, weight, "weight", kernel_layout, kDilationKernel);
  check_same_dtype(input, data, weight, "weight");
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  const DataType dtype = attrs.out_dtype.value_or(data->dtype);
  check_out_dtype(input, dtype, data->dtype);
  if (!unify_dims(dims[1], kernel[0]))
    input.fail(fmt::format("weight must have {} channels, as data has, got {}", to_string(dims[1]), show(weight)));
  std::vector<PrimExpr> out{dims[0], dims[1]};
  for (size_t i = 0; i < 2; ++i) {
    const auto taps = as_int(kernel[1 + i]);
    if (!taps || *taps < 1) input.fail(fmt::format("the kernel's size must be known and 1 or more: {}", show(weight)));
    out.push_back(window_count(input, window, i, dims[2 + i], *taps));
  }
  return make_tensor_type(dims_in_layout(input, out, kDilationData, layout), dtype);
}

// Computes the greatest of data + weight over the taps of a window; taps outside the data read zeros.
template <typename T>
Compute<T> greatest_sum(const LetterView& data, const LetterView& weight, const Window& window, const Elements<T>& x,
                        const Elements<T>& w, const Shape& at) {
  Compute<T> best = least_value<Compute<T>>();
  const int64_t plane = data.at(0, at[0]) + data.at(1, at[1]), taps = weight.at(0, at[1]);
  for_each_index({weight.dims[1], weight.dims[2]}, [&](const Shape& tap) {
    int64_t from = plane;
    bool is_inside = true;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t place = at[2 + i] * window.strides[i] - window.pad_begin[i] + tap[i] * window.dilation[i];
      is_inside = is_inside && place >= 0 && place < data.dims[2 + i];
      from += data.at(2 + i, place);
    }
    const Compute<T> element = is_inside ? x[from] : Compute<T>(0);
    const Compute<T> sum = wrapping_add(element, w[taps + weight.at(1, tap[0]) + weight.at(2, tap[1])]);
    // NaN wins and stays.
    if (sum > best || sum != sum) best = sum;
  });
  return best;
}

std::vector<NDArray> eval_dilation(const EvalInput& input) {
  const auto& attrs = input.attrs<Dilation2DAttrs>();
  const NDArray out = input.make_output();
  const NDArray data = as_dtype(input.args[0], out.dtype()), weight = as_dtype(input.args[1], out.dtype());
  const Layout layout = Layout::parse(attrs.data_layout);
  const LetterView from(data.shape(), layout, kDilationData), to(out.shape(), layout, kDilationData);
  const LetterView taps(weight.shape(), Layout::parse(attrs.kernel_layout), kDilationKernel);
  const Window window = window_of(2, spread(attrs.strides, 2), attrs.padding, spread(attrs.dilations, 2));
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(data), w(weight), y(out);
    for_each_index(to.dims, [&](const Shape& at) {
      input.spend(taps.dims[1] * taps.dims[2]);
      y.set(to.offset(at), greatest_sum(from, taps, window, x, w, at));
    });
  });
  return {out};
}

}  // namespace

void register_dilation_ops() {
  OpBuilder("image.dilation2d",
            "Grayscale dilation: the greatest of data + weight over each window, of each channel by itself: data "
            "T[N,C,H,W], weight T[C,R,S] -> out_dtype[N,C,P,Q], P and Q as of nn.conv2d. Padding is zeros.")
      .arg("data", "Tensor", "T[N, C, H, W], numbers, or in data_layout: the image")
      .arg("weight", "Tensor", "T[C, R, S], or in kernel_layout: the values that are added to the elements of a window")
      .attrs<Dilation2DAttrs>()
      .relation(relate_dilation)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_dilation);
}

}  // namespace headrace::ops
