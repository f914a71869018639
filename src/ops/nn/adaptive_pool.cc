#include "ops/nn/adaptive_pool.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"

namespace headrace::ops {

void AdaptivePoolAttrs::fields(FieldList<AdaptivePoolAttrs>& f) {
  f.field<&AdaptivePoolAttrs::output_size>("output_size",
                                           {.default_value = Shape(),
                                            .has_default = true,
                                            .doc = "of the spatial axes; one value: of all; empty: as the data"})
      .field<&AdaptivePoolAttrs::layout>("layout",
                                         {.default_value = "", .has_default = true, .doc = "empty: NCW, NCHW or NCDHW"})
      .field<&AdaptivePoolAttrs::out_layout>("out_layout",
                                             {.default_value = "", .has_default = true, .doc = "empty: as layout"});
}

namespace {

struct Axes {
  std::vector<size_t> data, out;
};

Axes axes_of_attrs(const AdaptivePoolAttrs& attrs, size_t spatial) {
  const std::string_view letters = letters_of(spatial), layout = layout_or(attrs.layout, letters);
  return {axes_of(layout, letters), axes_of(layout_or(attrs.out_layout, layout), letters)};
}

Type relate_adaptive_pool(const RelationInput& input, size_t spatial) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<AdaptivePoolAttrs>();
  const std::string_view letters = letters_of(spatial), layout = layout_or(attrs.layout, letters);
  layout_axes(input, "layout", layout, letters);
  layout_axes(input, "out_layout", layout_or(attrs.out_layout, layout), letters);
  const Axes axes = axes_of_attrs(attrs, spatial);
  if (data->shape.size() != letters.size())
    input.fail(fmt::format("data must have {} dimensions ({}), got {}", letters.size(), layout, show(data)));
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  std::vector<PrimExpr> dims = from_layout(data->shape, axes.data);
  const Shape size = spread(attrs.output_size, spatial);
  if (!size.empty()) check_sizes(input, "output_size", size, spatial, 1);
  for (size_t i = 0; i < size.size(); ++i) {
    if (is_int(dims[2 + i], 0)) input.fail(fmt::format("a spatial axis of {} is empty", show(data)));
    dims[2 + i] = make_int(size[i]);
  }
  return make_tensor_type(Array<PrimExpr>(to_layout(dims, axes.out)), data->dtype);
}

// Calls body(offset) for the elements of the window of result `index` (by letters), in row-major order.
template <typename F>
void for_each_element(const Shape& data, const Shape& out, const Shape& strides, const Shape& index, F&& body) {
  Shape begin, extents, steps;
  int64_t at = index[0] * strides[0] + index[1] * strides[1];
  for (size_t i = 2; i < data.size(); ++i) {
    const int64_t first = adaptive_begin(index[i], data[i], out[i]);
    at += first * strides[i];
    extents.push_back(adaptive_end(index[i], data[i], out[i]) - first);
    steps.push_back(strides[i]);
  }
  for_each_offset<1>(extents, {steps}, [&](const auto& offset) { body(at + offset[0]); });
}

template <typename C>
C least_value() {
  if constexpr (is_floating<C>) {
    return -std::numeric_limits<C>::infinity();
  } else {
    return std::numeric_limits<C>::min();
  }
}

std::vector<NDArray> eval_adaptive_pool(const EvalInput& input, size_t spatial, bool takes_max) {
  const NDArray out = input.make_output();
  const Axes axes = axes_of_attrs(input.attrs<AdaptivePoolAttrs>(), spatial);
  const Shape data = from_layout(input.args[0].shape(), axes.data), to = from_layout(out.shape(), axes.out),
              strides = from_layout(dense_strides(input.args[0].shape()), axes.data);
  dispatch_number(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), y(out);
    int64_t next = 0;
    for_each_index(out.shape(), [&](const Shape& place) {
      C greatest = least_value<C>();
      Total<T> total = 0;
      int64_t count = 0;
      for_each_element(data, to, strides, from_layout(place, axes.out), [&](int64_t at) {
        // NaN is the greatest and stays.
        if (greatest == greatest && (x[at] > greatest || x[at] != x[at])) greatest = x[at];
        total = wrapping_add(total, static_cast<Total<T>>(x[at]));
        ++count;
      });
      y.set(next++, takes_max ? greatest : static_cast<C>(total / static_cast<Total<T>>(count)));
    });
  });
  return {out};
}

}  // namespace

void register_adaptive_pool_ops() {
  for (const size_t spatial : {1u, 2u, 3u}) {
    for (const bool takes_max : {true, false}) {
      OpBuilder(fmt::format("nn.adaptive_{}_pool{}d", takes_max ? "max" : "avg", spatial),
                fmt::format("{} of each window, window i of n being [floor(i * size / n), ceil((i + 1) * size / n)): "
                            "data T[{}] -> T[N,C,output_size].{}",
                            takes_max ? "Greatest element" : "Mean", fmt::join(letters_of(spatial), ","),
                            takes_max ? "" : " Integers truncate."))
          .arg("data")
          .attrs<AdaptivePoolAttrs>()
          .relation([=](const RelationInput& input) { return relate_adaptive_pool(input, spatial); })
          .fusion(FusionKind::anchor)
          .level(10)
          .eval([=](const EvalInput& input) { return eval_adaptive_pool(input, spatial, takes_max); });
    }
  }
}

}  // namespace headrace::ops
