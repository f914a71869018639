#include "ops/nn/pool.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

// The fields that both pools over windows have.
template <typename A>
static FieldList<A>& window_fields(FieldList<A>& f) {
  return f.template field<&A::pool_size>("pool_size", {.doc = "taps per spatial axis"})
      .template field<&A::strides>("strides", {.default_value = Shape{1}, .has_default = true, .doc = "steps"})
      .template field<&A::dilation>("dilation",
                                    {.default_value = Shape{1}, .has_default = true, .doc = "distance of taps"})
      .template field<&A::padding>(
          "padding", {.default_value = Shape{0}, .has_default = true, .doc = "all; per axis; or begins, then ends"})
      .template field<&A::layout>(
          "layout", {.default_value = "", .has_default = true, .doc = "empty: NCW, NCHW or NCDHW; or NCHW16c"})
      .template field<&A::out_layout>("out_layout",
                                      {.default_value = "", .has_default = true, .doc = "empty: as layout"})
      .template field<&A::ceil_mode>(
          "ceil_mode", {.default_value = false, .has_default = true, .doc = "also windows that reach past the end"});
}

void MaxPoolAttrs::fields(FieldList<MaxPoolAttrs>& f) { window_fields(f); }

void AvgPoolAttrs::fields(FieldList<AvgPoolAttrs>& f) {
  window_fields(f).field<&AvgPoolAttrs::count_include_pad>(
      "count_include_pad", {.default_value = false, .has_default = true, .doc = "padding counts as zeros"});
}

void GlobalPool2DAttrs::fields(FieldList<GlobalPool2DAttrs>& f) {
  f.field<&GlobalPool2DAttrs::layout>("layout",
                                      {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
      .field<&GlobalPool2DAttrs::out_layout>("out_layout",
                                             {.default_value = "", .has_default = true, .doc = "empty: as layout"});
}

namespace {

// ---- type relations

// Every window starts inside the data or its leading padding, also in ceil mode.
PrimExpr pooled_size(const RelationInput& input, const Window& window, size_t i, const PrimExpr& size, int64_t taps,
                     bool ceil_mode) {
  const int64_t stride = window.strides[i];
  if (!ceil_mode || stride == 1) return window_count(input, window, i, size, taps);
  const PrimExpr rounded_up = window_count(input, window, i, size, taps, stride - 1);
  const int64_t reach = (taps - 1) * window.dilation[i] + 1;
  const PrimExpr starts = floor_div(add_const(size, window.pad_begin[i] - 1), make_int(stride)) + 1;
  // The last start is at most size + pad_end + stride - 1 - reach, so mostly the limit is none and symbols stay simple.
  return window.pad_end[i] + stride <= reach ? rounded_up : make_binary(BinaryOp::min, rounded_up, starts);
}

template <typename A>
TypeRelationFn relate_pool(size_t spatial) {
  return [spatial](const RelationInput& input) -> Type {
    const TensorType data = input.tensor(0);
    if (!data) return {};
    const A& attrs = input.call.attrs_as<A>();
    const std::string_view letters = letters_of(spatial);
    auto [dims, out_layout] = check_pooled(input, data, layout_or(attrs.layout, letters), attrs.out_layout, letters);
    const Shape taps = spread(attrs.pool_size, spatial);
    check_sizes(input, "pool_size", taps, spatial, 1);
    const Window window =
        make_window(input, spatial, spread(attrs.strides, spatial), attrs.padding, spread(attrs.dilation, spatial));
    for (size_t i = 0; i < spatial; ++i) {
      dims[2 + i] = pooled_size(input, window, i, dims[2 + i], taps[i], attrs.ceil_mode);
    }
    return make_tensor_type(dims_in_layout(input, dims, letters, out_layout), data->dtype);
  };
}

Type relate_global(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<GlobalPool2DAttrs>();
  auto [dims, out_layout] = check_pooled(input, data, attrs.layout, attrs.out_layout, "NCHW");
  for (size_t i = 2; i < 4; ++i) {
    if (is_int(dims[i], 0)) input.fail(fmt::format("the plane of {} is empty", show(data)));
    dims[i] = make_int(1);
  }
  return make_tensor_type(dims_in_layout(input, dims, "NCHW", out_layout), data->dtype);
}

// ---- eval

// A pool by the letters of its layouts.
struct PoolView {
  LetterView data, out;
  Shape taps;
  Window window;
};

PoolView view_pool(const NDArray& data, const NDArray& out, std::string_view layout, std::string_view out_layout,
                   std::string_view letters) {
  return {.data = LetterView(data.shape(), Layout::parse(layout), letters),
          .out = LetterView(out.shape(), Layout::parse(out_layout), letters),
          .taps = {},
          .window = {}};
}

template <typename A>
PoolView view_of(const EvalInput& input, const NDArray& out, size_t spatial) {
  const A& attrs = input.attrs<A>();
  const std::string_view layout = layout_or(attrs.layout, letters_of(spatial));
  PoolView view = view_pool(input.args[0], out, layout, layout_or(attrs.out_layout, layout), letters_of(spatial));
  view.taps = spread(attrs.pool_size, spatial);
  view.window = window_of(spatial, spread(attrs.strides, spatial), attrs.padding, spread(attrs.dilation, spatial));
  return view;
}

PoolView view_global(const EvalInput& input, const NDArray& out) {
  const auto& attrs = input.attrs<GlobalPool2DAttrs>();
  PoolView view = view_pool(input.args[0], out, attrs.layout, layout_or(attrs.out_layout, attrs.layout), "NCHW");
  view.taps = {view.data.dims[2], view.data.dims[3]};
  view.window = window_of(2, {1, 1}, {0}, {1, 1});
  return view;
}

// Calls body(output offset, offset of its plane, index of the output in spatial axes).
template <typename F>
void for_each_window(const PoolView& v, F&& body) {
  for_each_index(v.out.dims, [&](const Shape& index) {
    body(v.out.offset(index), v.data.at(0, index[0]) + v.data.at(1, index[1]), std::span(index).subspan(2));
  });
}

// Calls body(offset within the plane) for the taps of a window that lie in the data, in order. Gives how many taps lie
// in the data or its padding.
template <typename F>
int64_t for_each_tap(const PoolView& v, std::span<const int64_t> window, F&& body) {
  const Window& w = v.window;
  Shape tap(window.size(), 0);
  int64_t counted = 0;
  while (true) {
    bool is_data = true, is_counted = true;
    int64_t offset = 0;
    for (size_t i = 0; i < tap.size(); ++i) {
      const int64_t size = v.data.dims[2 + i];
      const int64_t position = window[i] * w.strides[i] - w.pad_begin[i] + tap[i] * w.dilation[i];
      is_data = is_data && position >= 0 && position < size;
      is_counted = is_counted && position < size + w.pad_end[i];
      offset += v.data.at(2 + i, position);
    }
    counted += is_counted ? 1 : 0;
    if (is_data) body(offset);
    size_t axis = tap.size();
    while (axis > 0 && ++tap[axis - 1] == v.taps[axis - 1]) tap[--axis] = 0;
    if (axis == 0) return counted;
  }
}

std::vector<NDArray> eval_max(const EvalInput& input, const NDArray& out, const PoolView& view) {
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(out);
    for_each_window(view, [&](int64_t at, int64_t plane, std::span<const int64_t> window) {
      Compute<T> best = least_value<Compute<T>>();
      for_each_tap(view, window, [&](int64_t offset) {
        const Compute<T> value = x[plane + offset];
        // NaN wins and stays.
        if (value > best || value != value) best = value;
      });
      y.set(at, best);
    });
  });
  return {out};
}

std::vector<NDArray> eval_avg(const EvalInput& input, const NDArray& out, const PoolView& view, bool counts_padding) {
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(out);
    for_each_window(view, [&](int64_t at, int64_t plane, std::span<const int64_t> window) {
      Total<T> total = 0;
      int64_t in_data = 0;
      const int64_t counted = for_each_tap(view, window, [&](int64_t offset) {
        total = wrapping_add(total, static_cast<Total<T>>(x[plane + offset]));
        ++in_data;
      });
      const int64_t count = std::max<int64_t>(counts_padding ? counted : in_data, 1);
      y.set(at, static_cast<Compute<T>>(total / static_cast<Total<T>>(count)));
    });
  });
  return {out};
}

// ---- registration

void register_windows(size_t spatial) {
  const char* shapes[] = {"[N,C,W] -> T[N,C,Q]", "[N,C,H,W] -> T[N,C,P,Q]", "[N,C,D,H,W] -> T[N,C,O,P,Q]"};
  const std::string shape = fmt::format("data T{}", shapes[spatial - 1]);
  OpBuilder(
      fmt::format("nn.max_pool{}d", spatial),
      fmt::format("Greatest element of each window: {}. Padding never wins; in ceil mode a window may reach past the "
                  "end, but starts before it.",
                  shape))
      .arg("data")
      .attrs<MaxPoolAttrs>()
      .relation(relate_pool<MaxPoolAttrs>(spatial))
      .fusion(FusionKind::anchor)
      .level(2)
      .eval([spatial](const EvalInput& input) {
        const NDArray out = input.make_output();
        return eval_max(input, out, view_of<MaxPoolAttrs>(input, out, spatial));
      });
  OpBuilder(
      fmt::format("nn.avg_pool{}d", spatial),
      fmt::format("Mean of each window: {}. Divides by the taps in the data, with count_include_pad by those in data "
                  "or padding; 0 where a window has none. Integers truncate.",
                  shape))
      .arg("data")
      .attrs<AvgPoolAttrs>()
      .relation(relate_pool<AvgPoolAttrs>(spatial))
      .fusion(FusionKind::anchor)
      .level(2)
      .eval([spatial](const EvalInput& input) {
        const NDArray out = input.make_output();
        return eval_avg(input, out, view_of<AvgPoolAttrs>(input, out, spatial),
                        input.attrs<AvgPoolAttrs>().count_include_pad);
      });
}

void register_global(const char* name, const char* what, EvalFn eval) {
  OpBuilder(name, fmt::format("{} of each plane: data T[N,C,H,W] -> T[N,C,1,1].", what))
      .arg("data")
      .attrs<GlobalPool2DAttrs>()
      .relation(relate_global)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(std::move(eval));
}

Expr global_pool(std::string_view op, Expr data, std::string layout, Span span) {
  auto attrs = make_object<GlobalPool2DAttrs>();
  attrs->layout = std::move(layout);
  return relay::make_call(op, {std::move(data)}, attrs, std::move(span));
}

}  // namespace

void register_pool_ops() {
  for (size_t spatial : {1u, 2u, 3u}) register_windows(spatial);
  register_global("nn.global_max_pool2d", "Greatest element", [](const EvalInput& input) {
    const NDArray out = input.make_output();
    return eval_max(input, out, view_global(input, out));
  });
  register_global("nn.global_avg_pool2d", "Mean", [](const EvalInput& input) {
    const NDArray out = input.make_output();
    return eval_avg(input, out, view_global(input, out), false);
  });
}

Expr max_pool(Expr data, int spatial_axes, MaxPoolAttrs attrs, Span span) {
  return relay::make_call(fmt::format("nn.max_pool{}d", spatial_axes), {std::move(data)},
                          make_object<MaxPoolAttrs>(std::move(attrs)), std::move(span));
}

Expr avg_pool(Expr data, int spatial_axes, AvgPoolAttrs attrs, Span span) {
  return relay::make_call(fmt::format("nn.avg_pool{}d", spatial_axes), {std::move(data)},
                          make_object<AvgPoolAttrs>(std::move(attrs)), std::move(span));
}

Expr global_max_pool2d(Expr data, std::string layout, Span span) {
  return global_pool("nn.global_max_pool2d", std::move(data), std::move(layout), std::move(span));
}
Expr global_avg_pool2d(Expr data, std::string layout, Span span) {
  return global_pool("nn.global_avg_pool2d", std::move(data), std::move(layout), std::move(span));
}

}  // namespace headrace::ops
