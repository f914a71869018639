#include "ops/nn/loss.h"

#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index_value.h"
#include "relay/expr.h"

namespace headrace::ops {

void NLLLossAttrs::fields(FieldList<NLLLossAttrs>& f) {
  f.field<&NLLLossAttrs::reduction>("reduction",
                                    {.default_value = "mean", .has_default = true, .doc = "mean, sum or none"})
      .field<&NLLLossAttrs::ignore_index>("ignore_index",
                                          {.default_value = -100, .has_default = true, .doc = "a class without loss"});
}

namespace {

TensorType float_argument(const RelationInput& input, size_t i, std::string_view name) {
  const TensorType type = input.tensor(i);
  if (type && !type->dtype.is_float()) input.fail(fmt::format("{} must be floating point, got {}", name, show(type)));
  return type;
}

Type relate_cross_entropy(const RelationInput& input) {
  const TensorType predictions = float_argument(input, 0, "predictions"), targets = input.tensor(1);
  if (!predictions || !targets) return {};
  check_same_dtype(input, predictions, targets, "targets");
  bool agrees = predictions->shape.size() == 2 && targets->shape.size() == 2;
  for (size_t i = 0; agrees && i < 2; ++i) agrees = !arith::is_unequal(predictions->shape[i], targets->shape[i]);
  if (!agrees)
    input.fail(fmt::format("predictions and targets must have one shape of two dimensions, got {} and {}",
                           show(predictions), show(targets)));
  return make_tensor_type(Shape{}, predictions->dtype);
}

template <bool takes_logarithm>
std::vector<NDArray> eval_cross_entropy(const EvalInput& input) {
  const NDArray out = input.make_output();
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), y(input.args[1]);
    C total = 0;
    for (int64_t i = 0; i < input.args[0].num_elements(); ++i)
      total += (takes_logarithm ? std::log(x[i]) : x[i]) * y[i];
    Elements<T>(out).set(0, -total / static_cast<C>(input.args[0].shape()[0]));
  });
  return {out};
}

Type relate_nll_loss(const RelationInput& input) {
  const TensorType predictions = float_argument(input, 0, "predictions"), targets = input.tensor(1),
                   weights = input.tensor(2);
  const auto& attrs = input.call.attrs_as<NLLLossAttrs>();
  if (attrs.reduction != "mean" && attrs.reduction != "sum" && attrs.reduction != "none")
    input.fail(fmt::format("reduction is '{}', expected mean, sum or none", attrs.reduction));
  if (!predictions || !targets || !weights) return {};
  check_same_dtype(input, predictions, weights, "weights");
  if (!targets->dtype.is_int() && !targets->dtype.is_uint())
    input.fail(fmt::format("targets must be integers, got {}", show(targets)));
  const size_t rank = predictions->shape.size();
  bool agrees = rank >= 2 && targets->shape.size() + 1 == rank && weights->shape.size() == 1 &&
                !arith::is_unequal(weights->shape[0], predictions->shape[1]);
  for (size_t i = 0; agrees && i + 1 < rank; ++i)
    agrees = !arith::is_unequal(targets->shape[i], predictions->shape[i == 0 ? 0 : i + 1]);
  if (!agrees)
    input.fail(fmt::format("predictions [N, C, ...], targets [N, ...] and weights [C] do not agree: {}, {} and {}",
                           show(predictions), show(targets), show(weights)));
  return make_tensor_type(attrs.reduction == "none" ? targets->shape : Array<PrimExpr>(), predictions->dtype);
}

std::vector<NDArray> eval_nll_loss(const EvalInput& input) {
  const auto& attrs = input.attrs<NLLLossAttrs>();
  const NDArray out = input.make_output();
  const Shape& shape = input.args[0].shape();
  int64_t inner = 1;
  for (size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> x(input.args[0]), weight(input.args[2]), y(out);
    C total = 0, weights = 0;
    for (int64_t i = 0; i < input.args[1].num_elements(); ++i) {
      const int64_t c = index_at(input.args[1], i);
      const bool counts = c != attrs.ignore_index;
      if (counts && (c < 0 || c >= shape[1]))
        throw_at(input.call.span, "nn.nll_loss",
                 fmt::format("class {} is out of range for {} classes", index_text(input.args[1], i), shape[1]));
      const C loss = counts ? -x[(i / inner * shape[1] + c) * inner + i % inner] * weight[c] : C{0};
      total += loss;
      weights += counts ? weight[c] : C{0};
      if (attrs.reduction == "none") y.set(i, loss);
    }
    if (attrs.reduction != "none") y.set(0, attrs.reduction == "mean" ? total / weights : total);
  });
  return {out};
}

}  // namespace

void register_loss_ops() {
  const auto entropy = [](const char* name, const char* doc, EvalFn eval) {
    OpBuilder(name, doc)
        .arg("predictions", "Tensor", "f[N, C]: the prediction for each class, or its logarithm")
        .arg("targets", "Tensor", "f[N, C]: how likely each class is, of the same dtype")
        .relation(relate_cross_entropy)
        .fusion(FusionKind::opaque)
        .level(10)
        .eval(std::move(eval));
  };
  entropy("nn.cross_entropy", "-sum(log(predictions) * targets) / N: f[N, C], f[N, C] -> f[].",
          eval_cross_entropy<true>);
  entropy(
      "nn.cross_entropy_with_logits",
      "-sum(predictions * targets) / N, where predictions are logarithms (of log_softmax): f[N, C], f[N, C] -> f[].",
      eval_cross_entropy<false>);
  OpBuilder("nn.nll_loss",
            "-predictions[n, targets[n, ...], ...] * weights[targets[n, ...]]: f[N, C, ...], int[N, ...], f[C] -> f[], "
            "the sum divided by the sum of the weights, or the sum, or f[N, ...].")
      .arg("predictions", "Tensor", "f[N, C, ...]: the logarithm of how likely each class is")
      .arg("targets", "Tensor", "int[N, ...]: the class that is right")
      .arg("weights", "Tensor", "f[C]: the weight of each class, of predictions' dtype")
      .attrs<NLLLossAttrs>()
      .relation(relate_nll_loss)
      .fusion(FusionKind::opaque)
      .level(10)
      .eval(eval_nll_loss);
}

Expr nll_loss(Expr predictions, Expr targets, Expr weights, std::string reduction, int64_t ignore_index, Span span) {
  return call_with<NLLLossAttrs>(
      "nn.nll_loss", {std::move(predictions), std::move(targets), std::move(weights)}, std::move(span),
      [&](auto& attrs) { attrs.reduction = std::move(reduction), attrs.ignore_index = ignore_index; });
}

}  // namespace headrace::ops
