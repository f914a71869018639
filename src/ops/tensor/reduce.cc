#include "ops/tensor/reduce.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index.h"
#include "ops/loops/positions.h"
#include "relay/match.h"

namespace headrace::ops {

void ReduceAttrs::fields(FieldList<ReduceAttrs>& f) {
  f.field<&ReduceAttrs::axis>("axis", {.optional = true,
                                       .default_value = Value(),
                                       .has_default = true,
                                       .doc = "axes to reduce, negative ones from the end; None: all"})
      .field<&ReduceAttrs::keepdims>(
          "keepdims", {.default_value = false, .has_default = true, .doc = "keep reduced axes with size 1"})
      .field<&ReduceAttrs::exclude>(
          "exclude", {.default_value = false, .has_default = true, .doc = "reduce the axes that are not named"});
}

void ArgReduceAttrs::fields(FieldList<ArgReduceAttrs>& f) {
  f.field<&ArgReduceAttrs::axis>("axis", {.optional = true,
                                          .default_value = Value(),
                                          .has_default = true,
                                          .doc = "axes to reduce, negative ones from the end; None: all"})
      .field<&ArgReduceAttrs::keepdims>(
          "keepdims", {.default_value = false, .has_default = true, .doc = "keep reduced axes with size 1"})
      .field<&ArgReduceAttrs::select_last_index>(
          "select_last_index",
          {.default_value = false, .has_default = true, .doc = "whether the last of equal elements counts"})
      .field<&ArgReduceAttrs::exclude>(
          "exclude", {.default_value = false, .has_default = true, .doc = "reduce the axes that are not named"})
      .field<&ArgReduceAttrs::dtype>(
          "dtype", {.default_value = "int32", .has_default = true, .doc = "dtype of the index: int32 or int64"});
}

void VarianceAttrs::fields(FieldList<VarianceAttrs>& f) {
  f.field<&VarianceAttrs::axis>("axis", {.optional = true,
                                         .default_value = Value(),
                                         .has_default = true,
                                         .doc = "axes to reduce, negative ones from the end; None: all"})
      .field<&VarianceAttrs::keepdims>(
          "keepdims", {.default_value = false, .has_default = true, .doc = "keep reduced axes with size 1"})
      .field<&VarianceAttrs::exclude>(
          "exclude", {.default_value = false, .has_default = true, .doc = "reduce the axes that are not named"})
      .field<&VarianceAttrs::unbiased>(
          "unbiased", {.default_value = false, .has_default = true, .doc = "divide by N - 1 in place of N"});
}

void CollapseSumAttrs::fields(FieldList<CollapseSumAttrs>& f) {
  f.field<&CollapseSumAttrs::shape>("shape",
                                    {.default_value = Shape(), .has_default = true, .doc = "the result's shape"});
}

namespace {

using relay::make_call;

// Returns which axes are reduced. The relation has checked them when eval asks.
std::vector<bool> reduced_axes(const std::optional<Shape>& axis, bool exclude, size_t rank) {
  if (!axis) return std::vector<bool>(rank, !exclude);
  std::vector<bool> reduced(rank, exclude);
  for (int64_t a : *axis) reduced[normal_axis(a, rank)] = !exclude;
  return reduced;
}

template <typename A>
Type reduced_type(const RelationInput& input, const TensorType& data, DataType dtype) {
  const A& attrs = input.call.attrs_as<A>();
  const size_t rank = data->shape.size();
  if (attrs.axis) {
    std::vector<bool> seen(rank, false);
    for (int64_t a : *attrs.axis) {
      const size_t axis = normal_axis(input, a, rank);
      if (seen[axis]) input.fail(fmt::format("axis {} is named twice in ({})", a, fmt::join(*attrs.axis, ", ")));
      seen[axis] = true;
    }
  }
  const std::vector<bool> reduced = reduced_axes(attrs.axis, attrs.exclude, rank);
  Array<PrimExpr> shape;
  for (size_t i = 0; i < rank; ++i) {
    if (!reduced[i]) {
      shape.push_back(data->shape[i]);
    } else if (attrs.keepdims) {
      shape.push_back(make_int(1));
    }
  }
  return make_tensor_type(shape, dtype);
}

Type relate_numbers(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}; cast it", show(data)));
  return reduced_type<ReduceAttrs>(input, data, data->dtype);
}

// Refuses to reduce no elements: they have no greatest element and no mean.
template <typename A>
void check_not_empty(const RelationInput& input, const TensorType& data) {
  const A& attrs = input.call.attrs_as<A>();
  const std::vector<bool> reduced = reduced_axes(attrs.axis, attrs.exclude, data->shape.size());
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i] && is_int(data->shape[i], 0)) {
      input.fail(fmt::format("axis {} of {} is empty: nothing to choose from", i, show(data)));
    }
  }
}

Type relate_extremum(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const Type result = reduced_type<ReduceAttrs>(input, data, data->dtype);
  check_not_empty<ReduceAttrs>(input, data);
  return result;
}

Type relate_mean(const RelationInput& input) {
  const Type result = relate_numbers(input);
  if (result) check_not_empty<ReduceAttrs>(input, input.tensor(0));
  return result;
}

Type relate_logical(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (!data->dtype.is_bool()) input.fail(fmt::format("data must be bool, got {}; cast it", show(data)));
  return reduced_type<ReduceAttrs>(input, data, data->dtype);
}

// Refuses int32 for an index into more elements than int32 counts.
void check_reduced_positions(const RelationInput& input, const TensorType& data) {
  const auto& attrs = input.call.attrs_as<ArgReduceAttrs>();
  if (attrs.dtype != DataType::int_(32) && attrs.dtype != DataType::int_(64))
    input.fail(fmt::format("dtype must be int32 or int64, got {}", attrs.dtype));
  const std::vector<bool> reduced = reduced_axes(attrs.axis, attrs.exclude, data->shape.size());
  std::vector<PrimExpr> sizes;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) sizes.push_back(data->shape[i]);
  }
  check_positions(input, attrs.dtype, arith::product(Array<PrimExpr>(sizes)), kAskForInt64);
}

Type relate_arg(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const Type result = reduced_type<ArgReduceAttrs>(input, data, input.call.attrs_as<ArgReduceAttrs>().dtype);
  check_not_empty<ArgReduceAttrs>(input, data);
  check_reduced_positions(input, data);
  return result;
}

Type relate_variance(const RelationInput& input) {
  const TensorType data = input.tensor(0), mean = input.tensor(1);
  if (!data || !mean) return {};
  if (!data->dtype.is_float()) input.fail(fmt::format("data must be floating point, got {}", show(data)));
  check_same_dtype(input, data, mean, "mean");
  const Type result = reduced_type<VarianceAttrs>(input, data, data->dtype);
  check_not_empty<VarianceAttrs>(input, data);
  const Array<PrimExpr> shape = broadcast_shapes(input, data, mean);
  if (shape.size() != data->shape.size()) {
    input.fail(fmt::format("mean must broadcast to data: {} and {}", show(mean), show(data)));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!unify_dims(shape[i], data->shape[i])) {
      input.fail(fmt::format("mean must broadcast to data: {} and {}", show(mean), show(data)));
    }
  }
  return result;
}

// Returns the type of data summed up to `target`, which must broadcast to data's shape.
Type collapsed_type(const RelationInput& input, const TensorType& data, const std::vector<PrimExpr>& target) {
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}; cast it", show(data)));
  const TensorType result = make_tensor_type(Array<PrimExpr>(target), data->dtype);
  bool fits = target.size() <= data->shape.size();
  for (size_t i = 0; fits && i < target.size(); ++i) {
    const auto size = as_int(target[i]), n = as_int(data->shape[data->shape.size() - target.size() + i]);
    fits = !size || *size == 1 || !n || *n == *size;
  }
  if (!fits)
    input.fail(fmt::format("{} cannot be summed up to {}: it does not broadcast to it", show(data), show(result)));
  return result;
}

Type relate_collapse_sum_to(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto target = requested_shape(input, input.call.attrs_as<CollapseSumAttrs>().shape, "shape");
  return data && target ? collapsed_type(input, data, *target) : Type();
}

Type relate_collapse_sum_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  return data && like ? collapsed_type(input, data, like->shape.to_vector()) : Type();
}

// ---- eval

// The input seen as (output element, position in the group of elements reduced into it).
struct Groups {
  OffsetWalk<1> outputs, elements;  // over the axes that stay, over those that go
  int64_t group_size = 1;

  // Throws a UserError when the groups are empty and the reduction has no value for them.
  void check_not_empty() const {
    if (group_size == 0) throw_user_error("a reduction over an empty axis has no result");
  }
  Groups(const Shape& shape, const std::vector<bool>& reduced)
      : outputs(walk_over(shape, reduced, false)), elements(walk_over(shape, reduced, true)) {
    for (size_t i = 0; i < shape.size(); ++i) group_size *= reduced[i] ? shape[i] : 1;
  }
  static OffsetWalk<1> walk_over(const Shape& shape, const std::vector<bool>& reduced, bool which) {
    const Shape strides = dense_strides(shape);
    Shape sizes, steps;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (reduced[i] != which) continue;
      sizes.push_back(shape[i]);
      steps.push_back(strides[i]);
    }
    return {std::move(sizes), {std::move(steps)}};
  }
  // Calls body(output index, offset of its group) in order.
  template <typename F>
  void for_each_output(F&& body) const {
    int64_t i = 0;
    outputs.run([&](const auto& at) { body(i++, at[0]); });
  }
  // Calls body(offset) for the elements of the group that starts at `start`, in row-major order.
  template <typename F>
  void for_each_element(int64_t start, F&& body) const {
    elements.run([&](const auto& at) { body(start + at[0]); });
  }
};

template <typename A>
Groups groups_of(const EvalInput& input) {
  const A& attrs = input.attrs<A>();
  const Shape& shape = input.args[0].shape();
  return Groups(shape, reduced_axes(attrs.axis, attrs.exclude, shape.size()));
}

// Folds each group with step(accumulator, element) from `start`.
template <typename Step>
EvalFn eval_fold(int start, Step step) {
  return [=](const EvalInput& input) {
    const NDArray out = input.make_output();
    const Groups groups = groups_of<ReduceAttrs>(input);
    dispatch_any(out.dtype(), [&]<typename T>() {
      const Elements<T> x(input.args[0]), y(out);
      groups.for_each_output([&](int64_t i, int64_t at) {
        auto total = static_cast<Compute<T>>(start);
        groups.for_each_element(at, [&](int64_t j) { total = static_cast<Compute<T>>(step(total, x[j])); });
        y.set(i, total);
      });
    });
    return std::vector<NDArray>{out};
  };
}

std::vector<NDArray> eval_mean(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Groups groups = groups_of<ReduceAttrs>(input);
  if (groups.group_size == 0 && out.num_elements() > 0) throw_user_error("a mean over an empty axis has no result");
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(out);
    groups.for_each_output([&](int64_t i, int64_t at) {
      Total<T> total = 0;
      groups.for_each_element(at, [&](int64_t j) { total = wrapping_add(total, static_cast<Total<T>>(x[j])); });
      y.set(i, static_cast<Compute<T>>(total / static_cast<Total<T>>(groups.group_size)));
    });
  });
  return {out};
}

// Returns whether a replaces b as the extreme element of a group. NaN replaces any number; equal elements do not
// replace each other.
template <typename C>
bool beats(C a, C b, bool greatest) {
  if (b != b) return false;
  return a != a || (greatest ? a > b : a < b);
}

EvalFn eval_extremum(bool greatest) {
  return [greatest](const EvalInput& input) {
    const NDArray out = input.make_output();
    const Groups groups = groups_of<ReduceAttrs>(input);
    groups.check_not_empty();
    dispatch_any(out.dtype(), [&]<typename T>() {
      const Elements<T> x(input.args[0]), y(out);
      groups.for_each_output([&](int64_t i, int64_t at) {
        Compute<T> best = x[at];
        groups.for_each_element(at, [&](int64_t j) { best = beats(x[j], best, greatest) ? x[j] : best; });
        y.set(i, best);
      });
    });
    return std::vector<NDArray>{out};
  };
}

EvalFn eval_arg(bool greatest) {
  return [greatest](const EvalInput& input) {
    const NDArray out = input.make_output();
    const Groups groups = groups_of<ArgReduceAttrs>(input);
    groups.check_not_empty();
    check_positions(out.dtype(), groups.group_size, kAskForInt64);
    const bool last = input.attrs<ArgReduceAttrs>().select_last_index;
    dispatch_any(input.args[0].dtype(), [&]<typename T>() {
      const Elements<T> x(input.args[0]);
      groups.for_each_output([&](int64_t i, int64_t at) {
        Compute<T> best = x[at];
        int64_t position = 0, best_position = 0;
        groups.for_each_element(at, [&](int64_t j) {
          const bool better = beats(x[j], best, greatest) || (last && !beats(best, x[j], greatest));
          if (better) best = x[j], best_position = position;
          ++position;
        });
        set_element_int(out.tensor(), i, best_position);
      });
    });
    return std::vector<NDArray>{out};
  };
}

std::vector<NDArray> eval_variance(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Groups groups = groups_of<VarianceAttrs>(input);
  const Shape& shape = input.args[0].shape();
  // Where the mean of each element of data lies.
  std::vector<int64_t> mean_at;
  for_each_offset<1>(shape, {broadcast_strides(input.args[1].shape(), shape)},
                     [&](const auto& at) { mean_at.push_back(at[0]); });
  const int64_t divisor = groups.group_size - (input.attrs<VarianceAttrs>().unbiased ? 1 : 0);
  dispatch_float(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), mean(input.args[1]), y(out);
    groups.for_each_output([&](int64_t i, int64_t at) {
      Compute<T> total = 0;
      groups.for_each_element(at, [&](int64_t j) {
        const Compute<T> distance = x[j] - mean[mean_at[static_cast<size_t>(j)]];
        total += distance * distance;
      });
      y.set(i, total / static_cast<Compute<T>>(divisor));
    });
  });
  return {out};
}

std::vector<NDArray> eval_collapse_sum(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Shape &from = input.args[0].shape(), &to = out.shape();
  std::vector<bool> reduced(from.size(), true);
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t axis = from.size() - to.size() + i;
    // An axis of 1 needs no sum; an empty axis gives one element, 0.
    reduced[axis] = to[i] == 1 && from[axis] != 1;
  }
  const Groups groups(from, reduced);
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(out);
    groups.for_each_output([&](int64_t i, int64_t at) {
      Compute<T> total = 0;
      groups.for_each_element(at, [&](int64_t j) { total = wrapping_add(total, x[j]); });
      y.set(i, total);
    });
  });
  return {out};
}

// ---- value inference

// Infers the product of a list, which Size and Reshape need; a list has one axis, so any axis attribute names it.
std::optional<std::vector<PrimExpr>> infer_prod(const RelationInput& input) {
  const auto values = input.arg_value(0);
  const auto& attrs = input.call.attrs_as<ReduceAttrs>();
  const TensorType data = input.tensor(0);
  if (!values || !data || data->shape.size() > 1 || attrs.exclude || (attrs.axis && attrs.axis->empty()))
    return std::nullopt;
  PrimExpr total;
  for (const PrimExpr& value : *values) total = total ? total * value : value;
  if (!total) total = make_int(1);
  return std::vector<PrimExpr>{total};
}

// ---- layouts

template <typename A>
std::vector<size_t> axes_reduced(const relay::CallNode& call) {
  const A& attrs = call.attrs_as<A>();
  const std::vector<bool> reduced =
      reduced_axes(attrs.axis, attrs.exclude, relay::tensor_type_of(call.args[0])->shape.size());
  std::vector<size_t> axes;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) axes.push_back(i);
  }
  return axes;
}

template <typename A>
std::vector<size_t> axes_dropped(const relay::CallNode& call) {
  return call.attrs_as<A>().keepdims ? std::vector<size_t>() : axes_reduced<A>(call);
}

// Keeps a layout unless a reduced axis lies in parts that keepdims would change.
template <typename A>
std::optional<Attrs> keep_layout_of_reduction(const relay::CallNode& call, const LayoutForm& form) {
  const A& attrs = call.attrs_as<A>();
  Shape axes;
  for (const size_t axis : axes_reduced<A>(call)) axes.push_back(static_cast<int64_t>(axis));
  auto stored = form.whole(axes);
  if (!stored) return std::nullopt;
  // The index of an extremum counts along several axes in their order.
  if (std::is_same_v<A, ArgReduceAttrs> && !std::is_sorted(stored->begin(), stored->end())) return std::nullopt;
  std::sort(stored->begin(), stored->end());
  return Attrs(copy_with(attrs, [&](A& copy) {
    copy.exclude = false;
    if (attrs.axis || attrs.exclude) copy.axis = *stored;
  }));
}

void reduce_op(const char* name, const char* what, TypeRelationFn relation, EvalFn eval,
               ValueInferenceFn infer = nullptr) {
  OpBuilder op(name, fmt::format("{}: data T[...] -> T[the axes that stay], accumulated in T in row-major order "
                                 "(float16 and bfloat16 in float32); integers wrap.",
                                 what));
  op.arg("data", "Tensor", "T[...], numbers, or bool for all and any: the tensor to reduce")
      .attrs<ReduceAttrs>()
      .relation(std::move(relation))
      .fusion(FusionKind::reduction)
      .level(4)
      .eval(std::move(eval))
      .fact(kKeepLayout, keep_layout_of_reduction<ReduceAttrs>)
      .fact(kDroppedAxes, axes_dropped<ReduceAttrs>);
  if (infer) op.value(std::move(infer));
}

void arg_op(const char* name, const char* what, bool greatest) {
  OpBuilder(name, fmt::format("Index of the {} element: data T[...] -> dtype[the axes that stay], counted in row-major "
                              "order over the reduced axes. The first NaN counts as the {}.",
                              what, what))
      .arg("data", "Tensor", "T[...], numbers: the tensor to search")
      .attrs<ArgReduceAttrs>()
      .relation(relate_arg)
      .fusion(FusionKind::reduction)
      .level(4)
      .eval(eval_arg(greatest))
      .fact(kKeepLayout, keep_layout_of_reduction<ArgReduceAttrs>)
      .fact(kDroppedAxes, axes_dropped<ArgReduceAttrs>);
}

void register_collapses() {
  OpBuilder("collapse_sum_to",
            "data summed up along the axes that broadcasting `shape` to data repeats: T[...] -> T[shape].")
      .arg("data", "Tensor", "T[...], numbers: the tensor to sum")
      .arg("shape", "Tensor", "int[rank of the result], optional: shape as a tensor")
      .any_args()
      .attrs<CollapseSumAttrs>()
      .relation(relate_collapse_sum_to)
      .fusion(FusionKind::reduction)
      .level(4)
      .eval(eval_collapse_sum);
  OpBuilder("collapse_sum_like", "The same to the shape of collapse_type: T[...], [...] -> T[collapse_type's shape].")
      .arg("data", "Tensor", "T[...], numbers: the tensor to sum")
      .arg("collapse_type", "Tensor", "[...]: only its shape counts")
      .relation(relate_collapse_sum_like)
      .fusion(FusionKind::reduction)
      .level(10)
      .eval(eval_collapse_sum);
}

void register_variance() {
  OpBuilder("variance", "Mean of (data - mean)^2: data f[...], mean f[broadcasts to data] -> f[the axes that stay].")
      .arg("data", "Tensor", "f[...]: the elements")
      .arg("mean", "Tensor", "f[broadcasts to data], of the same dtype: their mean, its reduced axes of size 1")
      .attrs<VarianceAttrs>()
      .relation(relate_variance)
      .fusion(FusionKind::reduction)
      .level(4)
      .eval(eval_variance);
}

}  // namespace

void register_reduce_ops() {
  reduce_op("sum", "Sum; 0 of no elements", relate_numbers,
            eval_fold(0, [](auto a, auto x) { return wrapping_add(a, x); }));
  reduce_op("prod", "Product; 1 of no elements", relate_numbers,
            eval_fold(1, [](auto a, auto x) { return wrapping_mul(a, x); }), infer_prod);
  reduce_op("mean", "Sum divided by the number of elements; integers truncate", relate_mean, eval_mean);
  reduce_op("all", "Whether every element is true; data is bool", relate_logical,
            eval_fold(1, [](auto a, auto x) { return a != 0 && x != 0; }));
  reduce_op("any", "Whether an element is true; data is bool", relate_logical,
            eval_fold(0, [](auto a, auto x) { return a != 0 || x != 0; }));
  reduce_op("max", "Greatest element; NaN when one is", relate_extremum, eval_extremum(true));
  reduce_op("min", "Least element; NaN when one is", relate_extremum, eval_extremum(false));
  arg_op("argmax", "greatest", true);
  arg_op("argmin", "least", false);
  register_collapses();
  register_variance();
}

Expr reduce(std::string_view op, Expr data, std::optional<Shape> axis, bool keepdims, bool exclude, Span span) {
  auto attrs = make_object<ReduceAttrs>();
  attrs->axis = std::move(axis);
  attrs->keepdims = keepdims;
  attrs->exclude = exclude;
  return make_call(op, {std::move(data)}, attrs, std::move(span));
}

Expr arg_reduce(std::string_view op, Expr data, std::optional<Shape> axis, bool keepdims, bool select_last_index,
                DataType dtype, Span span) {
  auto attrs = make_object<ArgReduceAttrs>();
  attrs->axis = std::move(axis);
  attrs->keepdims = keepdims;
  attrs->select_last_index = select_last_index;
  attrs->dtype = dtype;
  return make_call(op, {std::move(data)}, attrs, std::move(span));
}

Expr collapse_sum_to(Expr data, Shape shape, Span span) {
  auto attrs = make_object<CollapseSumAttrs>();
  attrs->shape = std::move(shape);
  return make_call("collapse_sum_to", {std::move(data)}, attrs, std::move(span));
}

Expr variance(Expr data, Expr mean, std::optional<Shape> axis, bool keepdims, bool unbiased, Span span) {
  auto attrs = make_object<VarianceAttrs>();
  attrs->axis = std::move(axis);
  attrs->keepdims = keepdims;
  attrs->unbiased = unbiased;
  return make_call("variance", {std::move(data), std::move(mean)}, attrs, std::move(span));
}

}  // namespace headrace::ops
