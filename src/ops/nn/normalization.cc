#include "ops/nn/normalization.h"

#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "relay/expr.h"

namespace headrace::ops {

void BatchNormAttrs::fields(FieldList<BatchNormAttrs>& f) {
  f.field<&BatchNormAttrs::axis>("axis", {.default_value = 1, .has_default = true, .doc = "the channels"})
      .field<&BatchNormAttrs::epsilon>("epsilon",
                                       {.default_value = 1e-5, .has_default = true, .doc = "added to the variance"})
      .field<&BatchNormAttrs::momentum>(
          "momentum",
          {.default_value = 0.1, .has_default = true, .doc = "how fast the moving statistics follow, when training"})
      .field<&BatchNormAttrs::center>("center", {.default_value = true, .has_default = true, .doc = "add beta"})
      .field<&BatchNormAttrs::scale>("scale", {.default_value = true, .has_default = true, .doc = "multiply by gamma"});
}

void LayerNormAttrs::fields(FieldList<LayerNormAttrs>& f) {
  f.field<&LayerNormAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the normalised axis"})
      .field<&LayerNormAttrs::epsilon>("epsilon",
                                       {.default_value = 1e-5, .has_default = true, .doc = "added to the variance"})
      .field<&LayerNormAttrs::center>("center", {.default_value = true, .has_default = true, .doc = "add beta"})
      .field<&LayerNormAttrs::scale>("scale", {.default_value = true, .has_default = true, .doc = "multiply by gamma"});
}

void SoftmaxAttrs::fields(FieldList<SoftmaxAttrs>& f) {
  f.field<&SoftmaxAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the axis that sums to 1"});
}

void LRNAttrs::fields(FieldList<LRNAttrs>& f) {
  f.field<&LRNAttrs::size>("size", {.default_value = 5, .has_default = true, .doc = "channels of the window"})
      .field<&LRNAttrs::axis>("axis", {.default_value = 1, .has_default = true, .doc = "the channels"})
      .field<&LRNAttrs::bias>("bias", {.default_value = 2.0, .has_default = true, .doc = "added to the sum"})
      .field<&LRNAttrs::alpha>("alpha", {.default_value = 1e-4, .has_default = true, .doc = "scale of the sum"})
      .field<&LRNAttrs::beta>("beta", {.default_value = 0.75, .has_default = true, .doc = "exponent"});
}

TensorType float_data(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data && !data->dtype.is_float()) input.fail(fmt::format("data must be floating point, got {}", show(data)));
  return data;
}

namespace {

// ---- type relations

// Arguments 1.. are vectors along `axis` of data. False while one is not known.
bool check_channel_vectors(const RelationInput& input, const TensorType& data, size_t axis) {
  bool all_known = true;
  for (size_t i = 1; i < input.arg_types.size(); ++i) {
    const TensorType vector = input.tensor(i);
    if (!vector) {
      input.assume(i, make_tensor_type(Array<PrimExpr>{data->shape[axis]}, data->dtype));
      all_known = false;
      continue;
    }
    const std::string& name = input.call.as_op()->arguments[i].name;
    check_same_dtype(input, data, vector, name);
    if (vector->shape.size() != 1 || !unify_dims(vector->shape[0], data->shape[axis])) {
      input.fail(fmt::format("{} must have shape ({}), axis {} of data {}, got {}", name, to_string(data->shape[axis]),
                             axis, show(data), show(vector)));
    }
  }
  return all_known;
}

Type relate_batch_norm(const RelationInput& input) {
  const TensorType data = float_data(input);
  if (!data) return {};
  const size_t axis = normal_axis(input, input.call.attrs_as<BatchNormAttrs>().axis, data->shape.size());
  if (!check_channel_vectors(input, data, axis)) return {};
  const Type vector = make_tensor_type(Array<PrimExpr>{data->shape[axis]}, data->dtype);
  return make_tuple_type({data, vector, vector});
}

Type relate_layer_norm(const RelationInput& input) {
  const TensorType data = float_data(input);
  if (!data) return {};
  const size_t axis = normal_axis(input, input.call.attrs_as<LayerNormAttrs>().axis, data->shape.size());
  return check_channel_vectors(input, data, axis) ? Type(data) : Type();
}

Type relate_softmax(const RelationInput& input) {
  const TensorType data = float_data(input);
  if (data) normal_axis(input, input.call.attrs_as<SoftmaxAttrs>().axis, data->shape.size());
  return data;
}

Type relate_lrn(const RelationInput& input) {
  const TensorType data = float_data(input);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<LRNAttrs>();
  normal_axis(input, attrs.axis, data->shape.size());
  if (attrs.size < 1) input.fail(fmt::format("size must be 1 or more, got {}", attrs.size));
  return data;
}

// ---- eval

// A shape seen as [outer, size, inner] around one axis.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
  AxisView(const Shape& shape, int64_t axis) {
    const size_t a = normal_axis(axis, shape.size());
    for (size_t i = 0; i < shape.size(); ++i) (i < a ? outer : i == a ? size : inner) *= shape[i];
  }
  // Calls body(offset) for the first element of each line along the axis; its elements are `inner` apart.
  template <typename F>
  void for_each_line(F&& body) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) body(o * size * inner + i);
    }
  }
};

std::vector<NDArray> eval_batch_norm(const EvalInput& input) {
  const auto& attrs = input.attrs<BatchNormAttrs>();
  const NDArray out = input.make_output();
  const AxisView view(out.shape(), attrs.axis);
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), gamma(input.args[1]), beta(input.args[2]);
    const Elements<T> mean(input.args[3]), variance(input.args[4]), y(out);
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const int64_t c = i / view.inner % view.size;
      const C normal = (x[i] - mean[c]) / std::sqrt(variance[c] + static_cast<C>(attrs.epsilon));
      y.set(i, (attrs.scale ? normal * gamma[c] : normal) + (attrs.center ? beta[c] : C{0}));
    }
  });
  return {out, input.args[3].copy(), input.args[4].copy()};
}

std::vector<NDArray> eval_layer_norm(const EvalInput& input) {
  const auto& attrs = input.attrs<LayerNormAttrs>();
  const NDArray out = input.make_output();
  const AxisView view(out.shape(), attrs.axis);
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), gamma(input.args[1]), beta(input.args[2]), y(out);
    const C count = static_cast<C>(view.size), epsilon = static_cast<C>(attrs.epsilon);
    view.for_each_line([&](int64_t at) {
      C sum = 0, squares = 0;
      for (int64_t i = 0; i < view.size; ++i) sum += x[at + i * view.inner];
      const C mean = sum / count;
      for (int64_t i = 0; i < view.size; ++i) {
        const C distance = x[at + i * view.inner] - mean;
        squares += distance * distance;
      }
      const C deviation = std::sqrt(squares / count + epsilon);
      for (int64_t i = 0; i < view.size; ++i) {
        const C normal = (x[at + i * view.inner] - mean) / deviation;
        y.set(at + i * view.inner, (attrs.scale ? normal * gamma[i] : normal) + (attrs.center ? beta[i] : C{0}));
      }
    });
  });
  return {out};
}

// Subtracts the greatest element first, so that exp cannot overflow.
template <bool logarithm>
std::vector<NDArray> eval_softmax(const EvalInput& input) {
  const NDArray out = input.make_output();
  const AxisView view(out.shape(), input.attrs<SoftmaxAttrs>().axis);
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), y(out);
    view.for_each_line([&](int64_t at) {
      C greatest = -std::numeric_limits<C>::infinity(), sum = 0;
      for (int64_t i = 0; i < view.size; ++i) greatest = std::max(greatest, x[at + i * view.inner]);
      for (int64_t i = 0; i < view.size; ++i) sum += std::exp(x[at + i * view.inner] - greatest);
      const C log_sum = std::log(sum);
      for (int64_t i = 0; i < view.size; ++i) {
        const C shifted = x[at + i * view.inner] - greatest;
        y.set(at + i * view.inner, logarithm ? shifted - log_sum : std::exp(shifted) / sum);
      }
    });
  });
  return {out};
}

std::vector<NDArray> eval_lrn(const EvalInput& input) {
  const auto& attrs = input.attrs<LRNAttrs>();
  const NDArray out = input.make_output();
  const AxisView view(out.shape(), attrs.axis);
  // An even window has its extra channel after the centre.
  const int64_t size = std::min(attrs.size, 2 * view.size + 1);
  const int64_t before = (size - 1) / 2, after = size / 2;
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), y(out);
    view.for_each_line([&](int64_t at) {
      for (int64_t c = 0; c < view.size; ++c) {
        input.spend(size);
        C squares = 0;
        for (int64_t i = std::max<int64_t>(0, c - before); i <= std::min(view.size - 1, c + after); ++i) {
          squares += x[at + i * view.inner] * x[at + i * view.inner];
        }
        const C scaled =
            static_cast<C>(attrs.bias) + static_cast<C>(attrs.alpha) / static_cast<C>(attrs.size) * squares;
        y.set(at + c * view.inner, x[at + c * view.inner] / std::pow(scaled, static_cast<C>(attrs.beta)));
      }
    });
  });
  return {out};
}

void register_softmaxes() {
  struct Row {
    const char *name, *doc;
    EvalFn eval;
    const char* argument = "f[...]: the scores";
  };
  const Row rows[] = {
      {"nn.softmax", "e^(x - max) / sum of e^(x - max) over `axis`: data f[...] -> the same type.",
       eval_softmax<false>},
      {"nn.fast_softmax", "A name only, which computes the same as nn.softmax: data f[...] -> the same type.",
       eval_softmax<false>, "f[...]: the scores (a name only: computes the same as nn.softmax)"},
      {"nn.log_softmax", "x - max - log(sum of e^(x - max)) over `axis`: data f[...] -> the same type.",
       eval_softmax<true>},
  };
  for (const Row& row : rows) {
    OpBuilder(row.name, row.doc)
        .arg("data", "Tensor", row.argument)
        .attrs<SoftmaxAttrs>()
        .relation(relate_softmax)
        .fusion(FusionKind::opaque)
        .eval(row.eval)
        .keeps_layout_but_axis<SoftmaxAttrs>();
  }
}

}  // namespace

void register_normalization_ops() {
  register_softmaxes();
  OpBuilder(
      "nn.batch_norm",
      "(data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta: data f[..., C, ...], four vectors f[C] -> "
      "(data's type, f[C], f[C]). Defined at inference: the last two results are moving_mean and moving_var.")
      .arg("data", "Tensor", "f[..., C, ...]: the tensor to normalize")
      .arg("gamma", "Tensor", "f[C]: the factor of each channel")
      .arg("beta", "Tensor", "f[C]: the offset of each channel")
      .arg("moving_mean", "Tensor", "f[C]: the mean of each channel")
      .arg("moving_var", "Tensor", "f[C]: the variance of each channel")
      .attrs<BatchNormAttrs>()
      .relation(relate_batch_norm)
      .fusion(FusionKind::opaque)
      .eval(eval_batch_norm)
      .keeps_layout_but_axis<BatchNormAttrs>();
  OpBuilder(
      "nn.layer_norm",
      "(data - mean) / sqrt(variance + epsilon) * gamma + beta over one axis: data f[..., C], gamma f[C], beta f[C] "
      "-> data's type; the variance divides by C.")
      .arg("data", "Tensor", "f[..., C, ...]: the tensor to normalize, along the axis of C")
      .arg("gamma", "Tensor", "f[C]: the factor of each element along it")
      .arg("beta", "Tensor", "f[C]: the value that is added to each element along it")
      .attrs<LayerNormAttrs>()
      .relation(relate_layer_norm)
      .fusion(FusionKind::opaque)
      .eval(eval_layer_norm)
      .keeps_layout_but_axis<LayerNormAttrs>();
  OpBuilder(
      "nn.lrn",
      "x / (bias + alpha / size * s)^beta, s the sum of squares over `size` channels around x: data f[..., C, ...] -> "
      "the same type. Krizhevsky et al. 2012, section 3.3, with ONNX's alpha / size.")
      .arg("data", "Tensor", "f[..., C, ...]: the tensor to normalize across the channels")
      .attrs<LRNAttrs>()
      .relation(relate_lrn)
      .fusion(FusionKind::opaque)
      .eval(eval_lrn)
      .keeps_layout_but_axis<LRNAttrs>();
}

Expr batch_norm(Expr data, Expr gamma, Expr beta, Expr moving_mean, Expr moving_var, BatchNormAttrs attrs, Span span) {
  return relay::make_call(
      "nn.batch_norm",
      {std::move(data), std::move(gamma), std::move(beta), std::move(moving_mean), std::move(moving_var)},
      make_object<BatchNormAttrs>(std::move(attrs)), std::move(span));
}

Expr layer_norm(Expr data, Expr gamma, Expr beta, LayerNormAttrs attrs, Span span) {
  return relay::make_call("nn.layer_norm", {std::move(data), std::move(gamma), std::move(beta)},
                          make_object<LayerNormAttrs>(std::move(attrs)), std::move(span));
}

static Expr make_softmax(std::string_view op, Expr data, int64_t axis, Span span) {
  auto attrs = make_object<SoftmaxAttrs>();
  attrs->axis = axis;
  return relay::make_call(op, {std::move(data)}, attrs, std::move(span));
}
Expr softmax(Expr data, int64_t axis, Span span) {
  return make_softmax("nn.softmax", std::move(data), axis, std::move(span));
}
Expr log_softmax(Expr data, int64_t axis, Span span) {
  return make_softmax("nn.log_softmax", std::move(data), axis, std::move(span));
}
Expr lrn(Expr data, LRNAttrs attrs, Span span) {
  return relay::make_call("nn.lrn", {std::move(data)}, make_object<LRNAttrs>(std::move(attrs)), std::move(span));
}

}  // namespace headrace::ops
