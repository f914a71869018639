#include "ops/nn/adaptive_pool.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"

namespace headrace::ops {

AdaptivePoolAttrs::AdaptivePoolAttrs(size_t spatial) : spatial(spatial), layout(letters_of(spatial)) {}

template <size_t rank>
void AdaptivePoolAttrsOf<rank>::fields(FieldList<AdaptivePoolAttrsOf>& f) {
  const AdaptivePoolAttrs usual(rank);
  f.template field<&AdaptivePoolAttrs::output_size>(
       "output_size", {.default_value = usual.output_size,
                       .has_default = true,
                       .doc = "the spatial sizes of the result; one value: all of them; empty: those of the data"})
      .template field<&AdaptivePoolAttrs::layout>(
          "layout", {.default_value = usual.layout,
                     .has_default = true,
                     .doc = fmt::format("an order of these letters; or {}16c", usual.layout)})
      .template field<&AdaptivePoolAttrs::out_layout>(
          "out_layout", {.default_value = "", .has_default = true, .doc = "empty: as layout"});
}

namespace {

Type relate_adaptive_pool(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<AdaptivePoolAttrs>();
  const std::string_view letters = letters_of(attrs.spatial);
  auto [dims, out_layout] = check_pooled(input, data, attrs.layout, attrs.out_layout, letters);
  const Shape size = spread(attrs.output_size, attrs.spatial);
  if (!size.empty()) check_sizes(input, "output_size", size, attrs.spatial, 1);
  for (size_t i = 0; i < size.size(); ++i) {
    if (is_int(dims[2 + i], 0)) input.fail(fmt::format("a spatial axis of {} is empty", show(data)));
    dims[2 + i] = make_int(size[i]);
  }
  return make_tensor_type(dims_in_layout(input, dims, letters, out_layout), data->dtype);
}

// Calls body(offset) for the elements of the window of result `index` (by letters), in row-major order.
template <typename F>
void for_each_element(const LetterView& data, const Shape& out, const Shape& index, F&& body) {
  Shape extents, steps;
  int64_t at = data.at(0, index[0]) + data.at(1, index[1]);
  for (size_t i = 2; i < out.size(); ++i) {
    const int64_t size = data.dims[i], first = adaptive_begin(index[i], size, out[i]);
    at += data.at(i, first);
    extents.push_back(adaptive_end(index[i], size, out[i]) - first);
    steps.push_back(data.at(i, 1));
  }
  for_each_offset<1>(extents, {steps}, [&](const auto& offset) { body(at + offset[0]); });
}

std::vector<NDArray> eval_adaptive_pool(const EvalInput& input, bool takes_max) {
  const NDArray out = input.make_output();
  const auto& attrs = input.attrs<AdaptivePoolAttrs>();
  const std::string_view letters = letters_of(attrs.spatial);
  const LetterView data(input.args[0].shape(), Layout::parse(attrs.layout), letters),
      to(out.shape(), Layout::parse(layout_or(attrs.out_layout, attrs.layout)), letters);
  dispatch_number(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), y(out);
    for_each_index(to.dims, [&](const Shape& index) {
      C greatest = least_value<C>();
      Total<T> total = 0;
      int64_t count = 0;
      input.spend(input.args[0].num_elements() / std::max<int64_t>(out.num_elements(), 1));
      for_each_element(data, to.dims, index, [&](int64_t at) {
        // NaN is the greatest and stays.
        if (greatest == greatest && (x[at] > greatest || x[at] != x[at])) greatest = x[at];
        total = wrapping_add(total, static_cast<Total<T>>(x[at]));
        ++count;
      });
      y.set(to.offset(index), takes_max ? greatest : static_cast<C>(total / static_cast<Total<T>>(count)));
    });
  });
  return {out};
}

template <size_t spatial>
void register_rank() {
  for (const bool takes_max : {true, false}) {
    OpBuilder(fmt::format("nn.adaptive_{}_pool{}d", takes_max ? "max" : "avg", spatial),
              fmt::format("{} of each window, window i of n being [floor(i * size / n), ceil((i + 1) * size / n)): "
                          "data T[{}] -> T[N,C,output_size].{}",
                          takes_max ? "Greatest element" : "Mean", fmt::join(letters_of(spatial), ","),
                          takes_max ? "" : " Integers truncate."))
        .arg("data", "Tensor",
             fmt::format("T[{}], numbers, or in another layout: the tensor to pool",
                         fmt::join(letters_of(spatial), ", ")))
        .attrs<AdaptivePoolAttrsOf<spatial>>()
        .relation(relate_adaptive_pool)
        .fusion(FusionKind::anchor)
        .level(10)
        .eval([=](const EvalInput& input) { return eval_adaptive_pool(input, takes_max); });
  }
}

}  // namespace

void register_adaptive_pool_ops() {
  register_rank<1>();
  register_rank<2>();
  register_rank<3>();
}

Expr adaptive_pool(bool takes_max, Expr data, Shape output_size, Span span) {
  const size_t spatial = output_size.size();
  const std::string op = fmt::format("nn.adaptive_{}_pool{}d", takes_max ? "max" : "avg", spatial);
  const auto fill = [&](AdaptivePoolAttrs& attrs) { attrs.output_size = std::move(output_size); };
  if (spatial == 1) return call_with<AdaptivePool1DAttrs>(op, {std::move(data)}, std::move(span), fill);
  if (spatial == 2) return call_with<AdaptivePool2DAttrs>(op, {std::move(data)}, std::move(span), fill);
  HEADRACE_CHECK(spatial == 3, "a pool over {} axes", spatial);
  return call_with<AdaptivePool3DAttrs>(op, {std::move(data)}, std::move(span), fill);
}

}  // namespace headrace::ops
