#include "ops/nn/group_norm.h"

#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/nn/normalization.h"

namespace headrace::ops {

template <typename A>
static void norm_fields(FieldList<A>& f) {
  f.template field<&A::axis>("axis", {.default_value = 1, .has_default = true, .doc = "the axis of channels"})
      .template field<&A::epsilon>("epsilon",
                                   {.default_value = 1e-5, .has_default = true, .doc = "added to the variance"})
      .template field<&A::center>("center", {.default_value = true, .has_default = true, .doc = "add beta"})
      .template field<&A::scale>("scale", {.default_value = true, .has_default = true, .doc = "multiply by gamma"});
}

void GroupNormAttrs::fields(FieldList<GroupNormAttrs>& f) {
  f.field<&GroupNormAttrs::num_groups>("num_groups",
                                       {.default_value = 1, .has_default = true, .doc = "groups of channels"});
  norm_fields(f);
}

void InstanceNormAttrs::fields(FieldList<InstanceNormAttrs>& f) { norm_fields(f); }

void L2NormalizeAttrs::fields(FieldList<L2NormalizeAttrs>& f) {
  f.field<&L2NormalizeAttrs::eps>("eps", {.doc = "the least sum of squares that is divided by"})
      .field<&L2NormalizeAttrs::axis>(
          "axis", {.default_value = Shape(), .has_default = true, .doc = "the axes of a vector; empty: all"});
}

GroupNormView view_of(const GroupNormAttrs& attrs, size_t rank, int64_t channels) {
  return {normal_axis(attrs.axis, rank), channels / attrs.num_groups, attrs.epsilon, attrs.center, attrs.scale};
}
GroupNormView view_of(const InstanceNormAttrs& attrs, size_t rank, int64_t) {
  return {normal_axis(attrs.axis, rank), 1, attrs.epsilon, attrs.center, attrs.scale};
}

namespace {

Type relate_norm(const RelationInput& input, int64_t given_axis, int64_t groups) {
  const TensorType data = float_data(input);
  if (!data) return {};
  const size_t axis = normal_axis(input, given_axis, data->shape.size());
  if (axis == 0) input.fail("axis 0 is the batch; channels must lie along another");
  const auto channels = as_int(data->shape[axis]);
  if (groups < 1 || (channels && *channels % groups != 0))
    input.fail(
        fmt::format("the channels ({}) must be a multiple of num_groups ({})", to_string(data->shape[axis]), groups));
  bool all_known = true;
  for (const size_t i : {1u, 2u}) {
    const TensorType vector = input.tensor(i);
    if (!vector) {
      input.assume(i, make_tensor_type(Array<PrimExpr>{data->shape[axis]}, data->dtype));
      all_known = false;
      continue;
    }
    const std::string_view name = i == 1 ? "gamma" : "beta";
    check_same_dtype(input, data, vector, name);
    if (vector->shape.size() != 1 || !unify_dims(vector->shape[0], data->shape[axis]))
      input.fail(fmt::format("{} must have shape ({}), axis {} of data {}, got {}", name, to_string(data->shape[axis]),
                             axis, show(data), show(vector)));
  }
  return all_known ? Type(data) : Type();
}

Type relate_group_norm(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<GroupNormAttrs>();
  return relate_norm(input, attrs.axis, attrs.num_groups);
}
Type relate_instance_norm(const RelationInput& input) {
  return relate_norm(input, input.call.attrs_as<InstanceNormAttrs>().axis, 1);
}

template <typename A>
std::vector<NDArray> eval_norm(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Shape& shape = out.shape();
  const size_t channel_axis = normal_axis(input.attrs<A>().axis, shape.size());
  const GroupNormView view = view_of(input.attrs<A>(), shape.size(), shape[channel_axis]);
  if (out.num_elements() == 0) return {out};
  const int64_t groups = shape[view.axis] / view.per_group;
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), gamma(input.args[1]), beta(input.args[2]), y(out);
    std::vector<C> means(static_cast<size_t>(shape[0] * groups), 0), squares(means.size(), 0);
    const C count = static_cast<C>(out.num_elements() / (shape[0] * groups)), epsilon = static_cast<C>(view.epsilon);
    // Calls body(position, group, channel) in row-major order.
    const auto walk = [&](auto&& body) {
      int64_t next = 0;
      for_each_index(shape, [&](const Shape& i) {
        body(next++, static_cast<size_t>(i[0] * groups + i[view.axis] / view.per_group), i[view.axis]);
      });
    };
    walk([&](int64_t i, size_t g, int64_t) { means[g] += x[i]; });
    for (C& mean : means) mean /= count;
    walk([&](int64_t i, size_t g, int64_t) { squares[g] += (x[i] - means[g]) * (x[i] - means[g]); });
    walk([&](int64_t i, size_t g, int64_t c) {
      const C normal = (x[i] - means[g]) / std::sqrt(squares[g] / count + epsilon);
      y.set(i, (view.scale ? normal * gamma[c] : normal) + (view.center ? beta[c] : C{0}));
    });
  });
  return {out};
}

Type relate_l2_normalize(const RelationInput& input) {
  const TensorType data = float_data(input);
  if (!data) return {};
  std::vector<bool> seen(data->shape.size(), false);
  for (const int64_t given : input.call.attrs_as<L2NormalizeAttrs>().axis) {
    const size_t axis = normal_axis(input, given, data->shape.size());
    if (seen[axis]) input.fail(fmt::format("axis {} is named twice", given));
    seen[axis] = true;
  }
  return data;
}

std::vector<NDArray> eval_l2_normalize(const EvalInput& input) {
  const auto& attrs = input.attrs<L2NormalizeAttrs>();
  const NDArray out = input.make_output();
  const Shape& shape = out.shape();
  // Where the sum of an element's vector is kept: strides over the axes that are not summed up.
  Shape kept = shape;
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = attrs.axis.empty() ? 1 : kept[i];
  for (const int64_t axis : attrs.axis) kept[normal_axis(axis, shape.size())] = 1;
  const Shape strides = broadcast_strides(kept, shape);
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), y(out);
    std::vector<C> sums(static_cast<size_t>(num_elements(kept)), 0);
    int64_t next = 0;
    for_each_index(shape, [&](const Shape& i) {
      sums[static_cast<size_t>(dot(i, strides))] += x[next] * x[next];
      ++next;
    });
    next = 0;
    for_each_index(shape, [&](const Shape& i) {
      const C sum = sums[static_cast<size_t>(dot(i, strides))], least = static_cast<C>(attrs.eps);
      y.set(next, x[next] / std::sqrt(sum < least ? least : sum));
      ++next;
    });
  });
  return {out};
}

// Both norms see axis 0 as the batch, wherever their channels are.
template <typename A>
std::optional<Attrs> keep_norm_layout(const relay::CallNode& call, const LayoutForm& form) {
  const A& attrs = call.attrs_as<A>();
  const auto axis = form.whole(attrs.axis);
  if (!axis || form.whole(0) != 0) return std::nullopt;
  return Attrs(copy_with(attrs, [&](A& copy) { copy.axis = *axis; }));
}

std::optional<Attrs> keep_l2_layout(const relay::CallNode& call, const LayoutForm& form) {
  const auto& attrs = call.attrs_as<L2NormalizeAttrs>();
  const auto axes = form.whole(attrs.axis);
  if (!axes) return std::nullopt;
  return Attrs(copy_with(attrs, [&](L2NormalizeAttrs& copy) { copy.axis = *axes; }));
}

}  // namespace

void register_group_norm_ops() {
  const auto norm = [](OpBuilder op, TypeRelationFn relation, EvalFn eval, KeepLayoutFn keep) {
    op.relation(std::move(relation)).fusion(FusionKind::opaque).level(1).eval(std::move(eval));
    op.fact(kKeepLayout, std::move(keep));
  };
  norm(OpBuilder("nn.group_norm",
                 "(data - mean) / sqrt(variance + epsilon) * gamma + beta over each group of channels of each batch: "
                 "data f[N, C, ...], gamma f[C], beta f[C] -> data's type. Wu and He 2018.")
           .arg("data", "Tensor", "f[N, C, ...]: the tensor to normalize")
           .arg("gamma", "Tensor", "f[C]: the factor of each channel")
           .arg("beta", "Tensor", "f[C]: the offset of each channel")
           .attrs<GroupNormAttrs>(),
       relate_group_norm, eval_norm<GroupNormAttrs>, keep_norm_layout<GroupNormAttrs>);
  norm(
      OpBuilder("nn.instance_norm",
                "(data - mean) / sqrt(variance + epsilon) * gamma + beta over each channel of each batch: data f[N, C, "
                "...], gamma f[C], beta f[C] -> data's type. Ulyanov et al. 2016.")
          .arg("data", "Tensor", "f[N, C, ...]: the tensor to normalize")
          .arg("gamma", "Tensor", "f[C]: the factor of each channel")
          .arg("beta", "Tensor", "f[C]: the offset of each channel")
          .attrs<InstanceNormAttrs>(),
      relate_instance_norm, eval_norm<InstanceNormAttrs>, keep_norm_layout<InstanceNormAttrs>);
  OpBuilder("nn.l2_normalize", "x / sqrt(max(sum of squares over `axis`, eps)): data f[...] -> the same type.")
      .arg("data", "Tensor", "f[...]: the tensor to normalize")
      .attrs<L2NormalizeAttrs>()
      .relation(relate_l2_normalize)
      .fusion(FusionKind::opaque)
      .level(2)
      .eval(eval_l2_normalize)
      .fact(kKeepLayout, keep_l2_layout);
}

}  // namespace headrace::ops
