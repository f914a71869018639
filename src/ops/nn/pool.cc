#include "ops/nn/pool.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/letter_view.h"
#include "ops/loops/move.h"
#include "relay/expr.h"

namespace headrace::ops {

PoolAttrs::PoolAttrs(size_t spatial)
    : spatial(spatial),
      pool_size(spatial, 1),
      strides(spatial, 1),
      dilation(spatial, 1),
      padding(spatial, 0),
      layout(letters_of(spatial)) {}

template <size_t rank, bool is_max>
void PoolAttrsOf<rank, is_max>::fields(FieldList<PoolAttrsOf>& f) {
  const PoolAttrs usual(rank);
  f.template field<&PoolAttrs::pool_size>(
       "pool_size", {.default_value = usual.pool_size, .has_default = true, .doc = "taps per spatial axis"})
      .template field<&PoolAttrs::strides>("strides", {.default_value = usual.strides,
                                                       .has_default = true,
                                                       .doc = "elements from one window to the next, per spatial axis"})
      .template field<&PoolAttrs::dilation>(
          "dilation", {.default_value = usual.dilation, .has_default = true, .doc = "distance of taps"})
      .template field<&PoolAttrs::padding>(
          "padding", {.default_value = usual.padding,
                      .has_default = true,
                      .doc = "one number for all; one per spatial axis; or all begins, then all ends"})
      .template field<&PoolAttrs::layout>("layout",
                                          {.default_value = usual.layout,
                                           .has_default = true,
                                           .doc = fmt::format("an order of these letters; or {}16c", usual.layout)})
      .template field<&PoolAttrs::out_layout>("out_layout",
                                              {.default_value = "", .has_default = true, .doc = "empty: as layout"})
      .template field<&PoolAttrs::ceil_mode>(
          "ceil_mode", {.default_value = false, .has_default = true, .doc = "also windows that reach past the end"});
  if constexpr (!is_max)
    f.template field<&PoolAttrs::count_include_pad>(
        "count_include_pad", {.default_value = false, .has_default = true, .doc = "padding counts as zeros"});
}

void GlobalPool2DAttrs::fields(FieldList<GlobalPool2DAttrs>& f) {
  f.field<&GlobalPool2DAttrs::layout>("layout",
                                      {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
      .field<&GlobalPool2DAttrs::out_layout>("out_layout",
                                             {.default_value = "", .has_default = true, .doc = "empty: as layout"});
}

PoolForm pool_form(const PoolAttrs& attrs) {
  const size_t spatial = attrs.spatial;
  return {.letters = letters_of(spatial),
          .layout = Layout::parse(attrs.layout),
          .out_layout = Layout::parse(layout_or(attrs.out_layout, attrs.layout)),
          .taps = spread(attrs.pool_size, spatial),
          .window = window_of(spatial, spread(attrs.strides, spatial), attrs.padding, spread(attrs.dilation, spatial))};
}

PoolForm global_pool_form(const GlobalPool2DAttrs& attrs, Shape plane) {
  return {.letters = "NCHW",
          .layout = Layout::parse(attrs.layout),
          .out_layout = Layout::parse(layout_or(attrs.out_layout, attrs.layout)),
          .taps = std::move(plane),
          .window = window_of(2, {1, 1}, {0}, {1, 1})};
}

namespace {

// ---- type relations

// Counts windows; every one starts inside the data or its leading padding, also in ceil mode.
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

// Returns the result type of a pool of `data` with the call's attributes.
TensorType pooled_type(const RelationInput& input, const TensorType& data) {
  const auto& attrs = input.call.attrs_as<PoolAttrs>();
  const size_t spatial = attrs.spatial;
  const std::string_view letters = letters_of(spatial);
  auto [dims, out_layout] = check_pooled(input, data, attrs.layout, attrs.out_layout, letters);
  const Shape taps = spread(attrs.pool_size, spatial);
  check_sizes(input, "pool_size", taps, spatial, 1);
  const Window window =
      make_window(input, spatial, spread(attrs.strides, spatial), attrs.padding, spread(attrs.dilation, spatial));
  for (size_t i = 0; i < spatial; ++i) {
    dims[2 + i] = pooled_size(input, window, i, dims[2 + i], taps[i], attrs.ceil_mode);
  }
  return make_tensor_type(dims_in_layout(input, dims, letters, out_layout), data->dtype);
}

Type relate_pool(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  return data ? pooled_type(input, data) : Type();
}

// Returns the data's type, and checks the other argument against the pool's result type.
Type relate_pool_grad(const RelationInput& input) {
  const TensorType data = input.tensor(1);
  if (!data) return {};
  if (!data->dtype.is_float()) input.fail(fmt::format("data must be floating point, got {}", show(data)));
  const TensorType pooled = pooled_type(input, data), gradient = input.tensor(0);
  if (!gradient) {
    input.assume(0, pooled);
    return {};
  }
  check_same_dtype(input, data, gradient, "out_grad");
  bool fits = gradient->shape.size() == pooled->shape.size();
  for (size_t i = 0; fits && i < pooled->shape.size(); ++i)
    fits = unify_dims(pooled->shape[i], gradient->shape[i]).has_value();
  if (!fits)
    input.fail(fmt::format("out_grad must be {}, as the pool of data {} is, got {}", show(pooled), show(data),
                           show(gradient)));
  return data;
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

// The tensors of a pool by the letters of their layouts.
struct PoolView {
  LetterView data, out;
  Shape taps;
  Window window;
  // `pooled` is the pool's result, or of its type.
  PoolView(const PoolForm& form, const NDArray& data, const NDArray& pooled)
      : data(data.shape(), form.layout, form.letters),
        out(pooled.shape(), form.out_layout, form.letters),
        taps(form.taps),
        window(form.window) {}
};

PoolView view_global(const EvalInput& input, const NDArray& out) {
  const auto& attrs = input.attrs<GlobalPool2DAttrs>();
  const NDArray& data = input.args[0];
  const LetterView plane(data.shape(), Layout::parse(attrs.layout), "NCHW");
  return {global_pool_form(attrs, {plane.dims[2], plane.dims[3]}), data, out};
}

// Calls body(output offset, offset of its plane, index of the output in spatial axes).
template <typename F>
void for_each_window(const EvalInput& input, const PoolView& v, F&& body) {
  int64_t steps = 1;  // a window may be far wider than the data
  for (size_t i = 0; i < v.taps.size(); ++i) steps *= std::min(v.taps[i], v.data.dims[2 + i]);
  for_each_index(v.out.dims, [&](const Shape& index) {
    input.spend(steps);
    body(v.out.offset(index), v.data.at(0, index[0]) + v.data.at(1, index[1]), std::span(index).subspan(2));
  });
}

// The taps of one axis of a window that lie in the data, [first, last), and how many lie in it or its padding.
struct AxisTaps {
  int64_t first = 0, last = 0, counted = 0;
  AxisTaps(const PoolView& v, size_t axis, int64_t window) {
    const Window& w = v.window;
    const int64_t size = v.data.dims[2 + axis], begin = window * w.strides[axis] - w.pad_begin[axis];
    const auto taps_before = [&](int64_t end) {
      const int64_t room = end - begin, dilation = w.dilation[axis];
      return room <= 0 ? 0 : std::min(v.taps[axis], (room - 1) / dilation + 1);
    };
    first = taps_before(0);
    last = std::max(first, taps_before(size));
    counted = taps_before(size + w.pad_end[axis]);
  }
};

// Calls body(offset within the plane) for the taps of a window that lie in the data, in order. Gives how many taps lie
// in the data or its padding.
template <typename F>
int64_t for_each_tap(const PoolView& v, std::span<const int64_t> window, F&& body) {
  std::vector<AxisTaps> taps;
  int64_t counted = 1;
  Shape count;
  for (size_t i = 0; i < window.size(); ++i) {
    taps.emplace_back(v, i, window[i]);
    counted *= taps[i].counted;
    count.push_back(taps[i].last - taps[i].first);
  }
  for_each_index(count, [&](const Shape& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      const int64_t begin = window[i] * v.window.strides[i] - v.window.pad_begin[i];
      offset += v.data.at(2 + i, begin + (taps[i].first + index[i]) * v.window.dilation[i]);
    }
    body(offset);
  });
  return counted;
}

std::vector<NDArray> eval_max(const EvalInput& input, const NDArray& out, const PoolView& view) {
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(out);
    for_each_window(input, view, [&](int64_t at, int64_t plane, std::span<const int64_t> window) {
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
    for_each_window(input, view, [&](int64_t at, int64_t plane, std::span<const int64_t> window) {
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

// Returns the offset of the first greatest tap of a window; none where no tap lies in the data. NaN is the greatest.
template <typename T>
std::optional<int64_t> first_greatest(const PoolView& view, const Elements<T>& x, int64_t plane,
                                      std::span<const int64_t> window) {
  std::optional<int64_t> best;
  for_each_tap(view, window, [&](int64_t offset) {
    const int64_t at = plane + offset;
    if (!best || x[at] > x[*best] || (x[at] != x[at] && x[*best] == x[*best])) best = at;
  });
  return best;
}

std::vector<NDArray> eval_pool_grad(const EvalInput& input, bool is_max) {
  const auto& attrs = input.attrs<PoolAttrs>();
  const NDArray &gradient = input.args[0], &data = input.args[1], out = input.make_output();
  const PoolView view(pool_form(attrs), data, gradient);
  dispatch_float(out.dtype(), [&]<typename T>() {
    const Elements<T> g(gradient), x(data), y(out);
    std::vector<Compute<T>> sums(static_cast<size_t>(out.num_elements()), Compute<T>(0));
    for_each_window(input, view, [&](int64_t at, int64_t plane, std::span<const int64_t> window) {
      if (is_max) {
        if (const auto first = first_greatest(view, x, plane, window)) sums[static_cast<size_t>(*first)] += g[at];
        return;
      }
      int64_t in_data = 0;
      const int64_t counted = for_each_tap(view, window, [&](int64_t) { ++in_data; });
      const int64_t count = std::max<int64_t>(attrs.count_include_pad ? counted : in_data, 1);
      const Compute<T> share = g[at] / static_cast<Compute<T>>(count);
      for_each_tap(view, window, [&](int64_t offset) { sums[static_cast<size_t>(plane + offset)] += share; });
    });
    for (size_t i = 0; i < sums.size(); ++i) y.set(static_cast<int64_t>(i), sums[i]);
  });
  return {out};
}

// ---- registration

// Returns `factors` where the windows slide over other axes than theirs.
template <typename T>
CommutingFactorsFn factors_beside(CommutingFactors factors) {
  return [factors](const relay::CallNode& call, std::optional<size_t> axis) {
    const T& attrs = call.attrs_as<T>();
    const bool keeps_layout = attrs.out_layout.empty() || attrs.out_layout == attrs.layout;
    const bool is_beside = !axis || (keeps_layout && axes_of(attrs.layout, "C")[0] == *axis);
    return is_beside ? factors : CommutingFactors::none;
  };
}

template <size_t spatial>
void register_windows() {
  const char* shapes[] = {"[N,C,W] -> T[N,C,Q]", "[N,C,H,W] -> T[N,C,P,Q]", "[N,C,D,H,W] -> T[N,C,O,P,Q]"};
  const std::string shape = fmt::format("data T{}", shapes[spatial - 1]);
  OpBuilder(
      fmt::format("nn.max_pool{}d", spatial),
      fmt::format("Greatest element of each window: {}. Padding never wins; in ceil mode a window may reach past the "
                  "end, but starts before it.",
                  shape))
      .arg(
          "data", "Tensor",
          fmt::format("T[{}], numbers, or in another layout: the tensor to pool", fmt::join(letters_of(spatial), ", ")))
      .attrs<PoolAttrsOf<spatial, true>>()
      .relation(relate_pool)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval([](const EvalInput& input) {
        const NDArray out = input.make_output();
        return eval_max(input, out, PoolView(pool_form(input.attrs<PoolAttrs>()), input.args[0], out));
      })
      .fact(kCommutingFactors, factors_beside<PoolAttrs>(CommutingFactors::positive));
  OpBuilder(
      fmt::format("nn.avg_pool{}d", spatial),
      fmt::format("Mean of each window: {}. Divides by the taps in the data, with count_include_pad by those in data "
                  "or padding; 0 where a window has none. Integers truncate.",
                  shape))
      .arg(
          "data", "Tensor",
          fmt::format("T[{}], numbers, or in another layout: the tensor to pool", fmt::join(letters_of(spatial), ", ")))
      .attrs<PoolAttrsOf<spatial, false>>()
      .relation(relate_pool)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval([](const EvalInput& input) {
        const NDArray out = input.make_output();
        const auto& attrs = input.attrs<PoolAttrs>();
        return eval_avg(input, out, PoolView(pool_form(attrs), input.args[0], out), attrs.count_include_pad);
      })
      .fact(kCommutingFactors, factors_beside<PoolAttrs>(CommutingFactors::any));
}

template <typename A>
void register_grad(const char* name, std::string doc) {
  const bool is_max = std::is_same_v<A, MaxPool2DAttrs>;
  OpBuilder(name, std::move(doc))
      .arg("out_grad", "Tensor", "f[N, C, P, Q], or in another layout: the gradient by the pool's result")
      .arg("data", "Tensor", "f[N, C, H, W], of the same dtype: the input of the pool")
      .attrs<A>()
      .relation(relate_pool_grad)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval([=](const EvalInput& input) { return eval_pool_grad(input, is_max); });
}

OpBuilder register_global(const char* name, const char* what, EvalFn eval) {
  OpBuilder op(name, fmt::format("{} of each plane: data T[N,C,H,W] -> T[N,C,1,1].", what));
  op.arg("data", "Tensor", "T[N, C, H, W], numbers, or in another layout: the tensor to pool")
      .attrs<GlobalPool2DAttrs>()
      .relation(relate_global)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(std::move(eval));
  return op;
}

Expr global_pool(std::string_view op, Expr data, std::string layout, Span span) {
  auto attrs = make_object<GlobalPool2DAttrs>();
  attrs->layout = std::move(layout);
  return relay::make_call(op, {std::move(data)}, attrs, std::move(span));
}

}  // namespace

void register_pool_ops() {
  register_windows<1>();
  register_windows<2>();
  register_windows<3>();
  register_grad<MaxPool2DAttrs>(
      "nn.max_pool2d_grad",
      "The gradient of nn.max_pool2d by its data: out_grad T[N,C,P,Q], in out_layout, and data T[N,C,H,W] -> "
      "T[N,C,H,W]. "
      "An element has the gradients of the windows whose first greatest element it is, T being floating point.");
  register_grad<AvgPool2DAttrs>("nn.avg_pool2d_grad",
                                "The gradient of nn.avg_pool2d by its data: out_grad T[N,C,P,Q], in out_layout, and "
                                "data T[N,C,H,W] -> T[N,C,H,W]. "
                                "An element has its share of the gradients of its windows, T being floating point.");
  register_global("nn.global_max_pool2d", "Greatest element", [](const EvalInput& input) {
    const NDArray out = input.make_output();
    return eval_max(input, out, view_global(input, out));
  });
  register_global("nn.global_avg_pool2d", "Mean", [](const EvalInput& input) {
    const NDArray out = input.make_output();
    return eval_avg(input, out, view_global(input, out), false);
  }).fact(kCommutingFactors, factors_beside<GlobalPool2DAttrs>(CommutingFactors::any));
}

static Expr pool(const char* kind, Expr data, const PoolAttrs& attrs, Span span) {
  const std::string op = fmt::format("nn.{}_pool{}d", kind, attrs.spatial);
  const auto own = make_node(get_op(op)->attrs_type_key, {}).cast<PoolAttrs>();
  *own = attrs;
  return relay::make_call(op, {std::move(data)}, own, std::move(span));
}

Expr max_pool(Expr data, const PoolAttrs& attrs, Span span) {
  return pool("max", std::move(data), attrs, std::move(span));
}
Expr avg_pool(Expr data, const PoolAttrs& attrs, Span span) {
  return pool("avg", std::move(data), attrs, std::move(span));
}

Expr global_max_pool2d(Expr data, std::string layout, Span span) {
  return global_pool("nn.global_max_pool2d", std::move(data), std::move(layout), std::move(span));
}
Expr global_avg_pool2d(Expr data, std::string layout, Span span) {
  return global_pool("nn.global_avg_pool2d", std::move(data), std::move(layout), std::move(span));
}

}  // namespace headrace::ops
