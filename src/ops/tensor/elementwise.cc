#include "ops/tensor/elementwise.h"

#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/tensor/fixed_point.h"
#include "relay/expr.h"

namespace headrace::ops {

void LeakyReluAttrs::fields(FieldList<LeakyReluAttrs>& f) {
  f.field<&LeakyReluAttrs::alpha>("alpha",
                                  {.default_value = 0.25, .has_default = true, .doc = "slope of the negative half"});
}

void PReluAttrs::fields(FieldList<PReluAttrs>& f) {
  f.field<&PReluAttrs::axis>("axis", {.default_value = 1, .has_default = true, .doc = "the axis that alpha is along"});
}

void ClipAttrs::fields(FieldList<ClipAttrs>& f) {
  f.field<&ClipAttrs::a_min>("a_min", {.doc = "the least value"})
      .field<&ClipAttrs::a_max>("a_max", {.doc = "the greatest value"});
}

void CastAttrs::fields(FieldList<CastAttrs>& f) { f.field<&CastAttrs::dtype>("dtype", {.doc = "the result's dtype"}); }

void DropoutAttrs::fields(FieldList<DropoutAttrs>& f) {
  f.field<&DropoutAttrs::rate>(
      "rate", {.default_value = 0.5, .has_default = true, .doc = "share of elements dropped when training"});
}

namespace {

using relay::make_call;

// ---- type relations

Type relate_same_type(const RelationInput& input) { return input.tensor(0); }

Type relate_float(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data && !data->dtype.is_float()) input.fail(fmt::format("data must be floating point, got {}", show(data)));
  return data;
}

Type relate_number(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data && data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  if (data && data->dtype.is_narrow_float())
    input.fail(fmt::format("no op computes with the floats of {}; cast it", show(data)));
  return data;
}

Type relate_number_to_bool(const RelationInput& input) {
  const Type data = relate_number(input);
  return data ? Type(make_tensor_type(data.as<TensorTypeNode>()->shape, DataType::bool_())) : Type();
}

Type relate_bool(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data && !data->dtype.is_bool()) input.fail(fmt::format("data must be bool, got {}; cast it", show(data)));
  return data;
}

Type relate_int_or_bool(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data && (data->dtype.is_float() || data->dtype.is_narrow_float()))
    input.fail(fmt::format("data must be integers or bool, got {}", show(data)));
  return data;
}

Type relate_clip(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ClipAttrs>();
  if (std::isnan(attrs.a_min) || std::isnan(attrs.a_max)) input.fail("a_min and a_max must not be NaN");
  return relate_number(input);
}

Type relate_cast(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const DataType dtype = input.call.attrs_as<CastAttrs>().dtype;
  if (dtype.is_handle() || dtype.is_void() || !dtype.is_scalar()) input.fail(fmt::format("cannot cast to {}", dtype));
  return data ? Type(make_tensor_type(data->shape, dtype)) : Type();
}

Type relate_cast_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  return data && like ? Type(make_tensor_type(data->shape, like->dtype)) : Type();
}

Type relate_dropout(const RelationInput& input) {
  const Type data = relate_float(input);
  return data ? Type(make_tuple_type({data, data})) : Type();
}

Type relate_prelu(const RelationInput& input) {
  const Type typed = relate_float(input);
  const TensorType data = input.tensor(0), alpha = input.tensor(1);
  if (!typed) return {};
  const size_t axis = normal_axis(input, input.call.attrs_as<PReluAttrs>().axis, data->shape.size());
  if (!alpha) {
    input.assume(1, make_tensor_type(Array<PrimExpr>{data->shape[axis]}, data->dtype));
    return {};
  }
  check_same_dtype(input, data, alpha, "alpha");
  if (alpha->shape.size() != 1 || !unify_dims(alpha->shape[0], data->shape[axis])) {
    input.fail(fmt::format("alpha must have shape ({}), the data's axis {}, got {}", to_string(data->shape[axis]), axis,
                           show(alpha)));
  }
  return typed;
}

// ---- eval

// Computes an op for `count` elements; `context` is the op's function.
template <typename C, typename R>
using ElementsFn = void (*)(const void* context, const C* x, R* y, int64_t count);

// Walks the elements. The walk is compiled once for each dtype and hands blocks to a function of each op: compiled into
// each op it took most of the room's build time.
template <typename In, typename Out>
void walk(const EvalInput& input, const NDArray& out, const void* context, ElementsFn<Compute<In>, Compute<Out>> f) {
  constexpr int64_t kBlock = 256;
  const Elements<In> x(input.args[0]);
  const Elements<Out> y(out);
  input.for_each_part(out.num_elements(), 1, [&](int64_t begin, int64_t end) {
    std::array<Compute<In>, kBlock> elements;
    std::array<Compute<Out>, kBlock> results;
    for (int64_t done = begin; done < end; done += kBlock) {
      const int64_t count = std::min(kBlock, end - done);
      for (int64_t i = 0; i < count; ++i) elements[static_cast<size_t>(i)] = x[done + i];
      f(context, elements.data(), results.data(), count);
      for (int64_t i = 0; i < count; ++i) y.set(done + i, results[static_cast<size_t>(i)]);
    }
  });
}

template <typename In, typename Out, typename F>
void walk_elements(const EvalInput& input, const NDArray& out, const F& f) {
  using C = Compute<In>;
  using R = Compute<Out>;
  walk<In, Out>(input, out, &f, [](const void* context, const C* x, R* y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>((*static_cast<const F*>(context))(x[i]));
  });
}

// Makes the evaluation of a unary function on floats: `f` is called with float or double.
template <typename F>
EvalFn eval_float(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    dispatch_float(out.dtype(), [&]<typename T>() { walk_elements<T, T>(input, out, f); });
    return std::vector<NDArray>{out};
  };
}

// Makes the evaluation of a unary function on floats and integers.
template <typename F>
EvalFn eval_number(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    dispatch_number(out.dtype(), [&]<typename T>() { walk_elements<T, T>(input, out, f); });
    return std::vector<NDArray>{out};
  };
}

// Makes the evaluation of floor, ceil, trunc, round or nearbyint, which leave integers as they are.
template <typename F>
EvalFn eval_rounding(F f) {
  return eval_number([f](auto x) {
    if constexpr (is_floating<decltype(x)>) {
      return f(x);
    } else {
      return x;
    }
  });
}

template <typename F>
EvalFn eval_predicate(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    // Integers are finite.
    dispatch_number(input.args[0].dtype(), [&]<typename T>() {
      walk_elements<T, Bool8>(input, out, [&](auto x) {
        if constexpr (is_floating<decltype(x)>) {
          return f(x);
        } else {
          return f(0.0f);
        }
      });
    });
    return std::vector<NDArray>{out};
  };
}

template <typename C>
C negate(C x) {
  if constexpr (is_floating<C>) {
    return -x;
  } else {
    // Wraps: the least integer is its own negative.
    return static_cast<C>(uint64_t{0} - static_cast<uint64_t>(x));
  }
}

std::vector<NDArray> eval_logical_not(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Elements<Bool8> x(input.args[0]), y(out);
  for (int64_t i = 0; i < out.num_elements(); ++i) y.set(i, x[i] == 0 ? 1 : 0);
  return {out};
}

std::vector<NDArray> eval_bitwise_not(const EvalInput& input) {
  if (input.args[0].dtype().is_bool()) return eval_logical_not(input);
  const NDArray out = input.make_output();
  dispatch_int(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(out);
    for (int64_t i = 0, n = out.num_elements(); i < n; ++i) y.set(i, static_cast<T>(~x[i]));
  });
  return {out};
}

std::vector<NDArray> eval_copy(const EvalInput& input) { return {input.args[0].copy()}; }

// Evaluates dropout in inference form: nothing is dropped and the mask is all ones.
std::vector<NDArray> eval_dropout(const EvalInput& input) {
  const NDArray mask = input.make_output(1);
  for (int64_t i = 0; i < mask.num_elements(); ++i) set_element(mask.tensor(), i, 1);
  return {input.args[0].copy(), mask};
}

EvalFn eval_fill(int64_t value) {
  return [value](const EvalInput& input) {
    const NDArray out = input.make_output();
    for (int64_t i = 0; i < out.num_elements(); ++i) set_element_int(out.tensor(), i, value);
    return std::vector<NDArray>{out};
  };
}

std::vector<NDArray> eval_leaky_relu(const EvalInput& input) {
  const double alpha = input.attrs<LeakyReluAttrs>().alpha;
  return eval_float([alpha](auto x) { return x > 0 ? x : x * static_cast<decltype(x)>(alpha); })(input);
}

std::vector<NDArray> eval_clip(const EvalInput& input) {
  const auto& attrs = input.attrs<ClipAttrs>();
  const DataType dtype = input.args[0].dtype();
  const auto limit = [&](double bound) { return dtype.is_float() ? round_number(bound, dtype) : bound; };
  return eval_number([a_min = limit(attrs.a_min), a_max = limit(attrs.a_max)](auto x) {
    using C = decltype(x);
    const C low = convert_number<C>(a_min), high = convert_number<C>(a_max);
    const C raised = x < low ? low : x;
    return raised > high ? high : raised;
  })(input);
}

std::vector<NDArray> eval_cast(const EvalInput& input) {
  const DataType dtype = input.out_types[0]->dtype;
  const NDArray& data = input.args[0];
  return {data.dtype() == dtype ? data.copy() : as_dtype(data, dtype)};
}

std::vector<NDArray> eval_prelu(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Shape& shape = out.shape();
  const size_t axis = normal_axis(input.attrs<PReluAttrs>().axis, shape.size());
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  dispatch_float(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), alpha(input.args[1]), y(out);
    for (int64_t i = 0; i < out.num_elements(); ++i) y.set(i, x[i] > 0 ? x[i] : x[i] * alpha[i / inner % shape[axis]]);
  });
  return {out};
}

// ---- value inference

std::optional<std::vector<PrimExpr>> infer_cast(const RelationInput& input) {
  const DataType dtype = input.call.attrs_as<CastAttrs>().dtype;
  // A bool says which numbers are not 0; a float list is not a shape.
  if (!dtype.is_int() && !dtype.is_uint()) return std::nullopt;
  const TensorType data = input.tensor(0);
  if (!data || !(data->dtype.is_int() || data->dtype.is_uint() || data->dtype.is_bool())) return std::nullopt;
  return input.arg_value(0);
}

std::optional<std::vector<PrimExpr>> infer_copy(const RelationInput& input) { return input.arg_value(0); }

std::optional<std::vector<PrimExpr>> infer_negative(const RelationInput& input) {
  auto values = input.arg_value(0);
  if (!values) return std::nullopt;
  for (PrimExpr& value : *values) value = make_int(0, value->dtype) - value;
  return values;
}

// ---- registration

template <typename F>
void unary_float(const char* name, const char* what, F f, const char* argument = "f[...]: x") {
  OpBuilder(name, fmt::format("{}: x f16|f32|f64|bf16[...] -> the same type.", what))
      .arg("data", "Tensor", argument)
      .relation(relate_float)
      .fusion(FusionKind::elementwise)
      .eval(eval_float(f));
}

// Registers a name that Relay has for a faster form of `same`. Here it computes the same to the bit.
template <typename F>
void name_only(const char* name, const char* same, F f) {
  const std::string what = fmt::format("A name only, which computes the same as {}", same);
  const std::string argument = fmt::format("f[...]: x (a name only: computes the same as {})", same);
  unary_float(name, what.c_str(), f, argument.c_str());
}

template <typename F>
void rounding(const char* name, const char* what, F f, const char* argument = "T[...], numbers: x") {
  OpBuilder(name, fmt::format("{}: x[...] -> the same type; integers stay.", what))
      .arg("data", "Tensor", argument)
      .relation(relate_number)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_rounding(f))
      .value(infer_copy);
}

void register_exponentials() {
  unary_float("exp", "e^x", [](auto x) { return std::exp(x); });
  unary_float("log", "Natural logarithm", [](auto x) { return std::log(x); });
  unary_float("log2", "Logarithm to base 2", [](auto x) { return std::log2(x); });
  unary_float("log10", "Logarithm to base 10", [](auto x) { return std::log10(x); });
  unary_float("sqrt", "Square root", [](auto x) { return std::sqrt(x); });
  unary_float("rsqrt", "1 / sqrt(x)", [](auto x) { return decltype(x){1} / std::sqrt(x); });
  // For x below -88 exp(-x) is infinite in float32 and the quotient 0, which is right to the last bit.
  unary_float("sigmoid", "1 / (1 + e^-x)", [](auto x) { return decltype(x){1} / (decltype(x){1} + std::exp(-x)); });
  unary_float("erf", "Error function", [](auto x) { return std::erf(x); });
  // In native code exp, tanh and erf of float32 are polynomials as they are (tir_passes/lower_math.h).
  name_only("fast_exp", "exp", [](auto x) { return std::exp(x); });
  name_only("fast_tanh", "tanh", [](auto x) { return std::tanh(x); });
  name_only("fast_erf", "erf", [](auto x) { return std::erf(x); });
}

void register_trigonometric() {
  unary_float("sin", "Sine, x in radians", [](auto x) { return std::sin(x); });
  unary_float("cos", "Cosine, x in radians", [](auto x) { return std::cos(x); });
  unary_float("tan", "Tangent, x in radians", [](auto x) { return std::tan(x); });
  unary_float("asin", "Inverse sine", [](auto x) { return std::asin(x); });
  unary_float("acos", "Inverse cosine", [](auto x) { return std::acos(x); });
  unary_float("atan", "Inverse tangent", [](auto x) { return std::atan(x); });
  unary_float("sinh", "Hyperbolic sine", [](auto x) { return std::sinh(x); });
  unary_float("cosh", "Hyperbolic cosine", [](auto x) { return std::cosh(x); });
  unary_float("tanh", "Hyperbolic tangent", [](auto x) { return std::tanh(x); });
  unary_float("asinh", "Inverse hyperbolic sine", [](auto x) { return std::asinh(x); });
  unary_float("acosh", "Inverse hyperbolic cosine", [](auto x) { return std::acosh(x); });
  unary_float("atanh", "Inverse hyperbolic tangent", [](auto x) { return std::atanh(x); });
}

void register_rounding() {
  rounding("floor", "Greatest integer not above x", [](auto x) { return std::floor(x); });
  rounding("ceil", "Least integer not below x", [](auto x) { return std::ceil(x); });
  rounding("trunc", "Integer part of x", [](auto x) { return std::trunc(x); });
  rounding(
      "round", "Nearest integer, halves away from zero", [](auto x) { return std::round(x); },
      "T[...], numbers: x (halves go away from zero)");
  // The default rounding mode is to nearest, halves to even.
  rounding(
      "nearbyint", "Nearest integer, halves to even", [](auto x) { return std::nearbyint(x); },
      "T[...], numbers: x (halves go to even)");
}

void register_signs() {
  OpBuilder("abs", "|x|: x[...] -> the same type; the least integer stays.")
      .arg("data", "Tensor", "T[...], numbers: x")
      .relation(relate_number)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_number([](auto x) {
        if constexpr (is_floating<decltype(x)>) {
          return std::abs(x);
        } else {
          return x < 0 ? negate(x) : x;
        }
      }));
  OpBuilder("negative", "-x: x[...] -> the same type; integers wrap.")
      .arg("data", "Tensor", "T[...], numbers: x")
      .relation(relate_number)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_number([](auto x) { return negate(x); }))
      .value(infer_negative);
  OpBuilder("sign", "-1, 0 or 1: x[...] -> the same type; NaN stays.")
      .arg("data", "Tensor", "T[...], numbers: x")
      .relation(relate_number)
      .fusion(FusionKind::elementwise)
      .eval(eval_number([](auto x) {
        using C = decltype(x);
        return x > 0 ? C{1} : x < 0 ? static_cast<C>(-1) : x;
      }));
}

void register_predicates() {
  auto predicate = [](const char* name, const char* what, auto f) {
    OpBuilder(name, fmt::format("{}: x[...] -> bool[...]; integers are finite.", what))
        .arg("data", "Tensor", "T[...], numbers: x")
        .relation(relate_number_to_bool)
        .fusion(FusionKind::elementwise)
        .level(3)
        .eval(eval_predicate(f));
  };
  predicate("isnan", "x is NaN", [](auto x) { return std::isnan(x); });
  predicate("isinf", "x is infinite", [](auto x) { return std::isinf(x); });
  predicate("isfinite", "x is neither infinite nor NaN", [](auto x) { return std::isfinite(x); });
  OpBuilder("logical_not", "not x: x bool[...] -> bool[...].")
      .arg("data", "Tensor", "bool[...]: x")
      .relation(relate_bool)
      .fusion(FusionKind::elementwise)
      .level(4)
      .eval(eval_logical_not);
  OpBuilder("bitwise_not", "Every bit inverted: x int|uint|bool[...] -> the same type.")
      .arg("data", "Tensor", "int[...] or bool[...]: x")
      .relation(relate_int_or_bool)
      .fusion(FusionKind::elementwise)
      .level(4)
      .eval(eval_bitwise_not);
}

// An op whose two slopes depend on the sign of x alone.
CommutingFactors positive_factors(const relay::CallNode&, std::optional<size_t>) { return CommutingFactors::positive; }

void register_activations() {
  OpBuilder("nn.relu", "max(x, 0), NaN stays: x[...] -> the same type.")
      .arg("data", "Tensor", "T[...], numbers: x")
      .relation(relate_number)
      .fusion(FusionKind::elementwise)
      .eval(eval_number([](auto x) { return x < 0 ? decltype(x){0} : x; }))
      .fact(kCommutingFactors, positive_factors);
  OpBuilder("nn.leaky_relu", "x where x > 0, else alpha * x: x f[...] -> the same type.")
      .arg("data", "Tensor", "f[...]: x")
      .attrs<LeakyReluAttrs>()
      .relation(relate_float)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_leaky_relu)
      .fact(kCommutingFactors, positive_factors);
  OpBuilder("nn.prelu", "x where x > 0, else alpha[c] * x: x f[..., C, ...], alpha f[C] -> x's type; C is at `axis`.")
      .arg("data", "Tensor", "f[..., C, ...]: x")
      .arg("alpha", "Tensor", "f[C], of the same dtype: the slope of each channel below 0")
      .attrs<PReluAttrs>()
      .relation(relate_prelu)
      .fusion(FusionKind::broadcast)
      .level(3)
      .eval(eval_prelu)
      .fact(kCommutingFactors, positive_factors)
      .keeps_layout_but_axis<PReluAttrs>();
  OpBuilder("clip",
            "min(max(x, a_min), a_max), NaN stays: x[...] -> the same type. Bounds outside an integer dtype's "
            "range are its limits.")
      .arg("data", "Tensor", "T[...], numbers: x")
      .attrs<ClipAttrs>()
      .relation(relate_clip)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_clip);
}

void register_copies() {
  OpBuilder(
      "cast",
      "x in another dtype: x[...] -> dtype[...]. Float to integer truncates toward zero and saturates, NaN "
      "gives 0; integer to integer wraps; to bool: is not zero. To floats of 8 and 4 bits it rounds to the nearest, "
      "ties to even, and saturates, infinities too.")
      .arg("data", "Tensor", "T[...], numbers or bool: the tensor to cast")
      .attrs<CastAttrs>()
      .relation(relate_cast)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_cast)
      .value(infer_cast);
  OpBuilder("cast_like", "x in the dtype of dtype_like: x[...], dtype_like T[...] -> T[x's shape]; see cast.")
      .arg("data", "Tensor", "T[...], numbers or bool: the tensor to cast")
      .arg("dtype_like", "Tensor", "[...]: only its dtype counts")
      .relation(relate_cast_like)
      .fusion(FusionKind::elementwise)
      .level(10)
      .eval(eval_cast);
  OpBuilder("copy", "x itself: x[...] -> the same type.")
      .arg("data", "Tensor", "T[...]: x")
      .relation(relate_same_type)
      .fusion(FusionKind::elementwise)
      .level(3)
      .eval(eval_copy)
      .value(infer_copy);
}

void register_fills() {
  OpBuilder("nn.dropout",
            "x f[...] -> (x, mask), both of x's type. Defined at inference: nothing is dropped, the mask is 1.")
      .arg("data", "Tensor", "f[...]: x")
      .attrs<DropoutAttrs>()
      .relation(relate_dropout)
      .fusion(FusionKind::opaque)
      .eval(eval_dropout);
  OpBuilder("zeros_like", "0 everywhere: x[...] -> the same type.")
      .arg("data", "Tensor", "T[...]: only its type counts")
      .relation(relate_same_type)
      .fusion(FusionKind::elementwise)
      .eval(eval_fill(0))
      .fact(kRepeats, {.type_operand = 0});
  OpBuilder("ones_like", "1 everywhere: x[...] -> the same type.")
      .arg("data", "Tensor", "T[...]: only its type counts")
      .relation(relate_same_type)
      .fusion(FusionKind::elementwise)
      .eval(eval_fill(1))
      .fact(kRepeats, {.type_operand = 0});
}

}  // namespace

void register_elementwise_ops() {
  register_exponentials();
  register_trigonometric();
  register_rounding();
  register_signs();
  register_predicates();
  register_activations();
  register_copies();
  register_fills();
  register_fixed_point_ops();
}

Expr unary(std::string_view op, Expr data, Span span) { return make_call(op, {std::move(data)}, {}, std::move(span)); }
Expr relu(Expr data, Span span) { return unary("nn.relu", std::move(data), std::move(span)); }

Expr leaky_relu(Expr data, double alpha, Span span) {
  auto attrs = make_object<LeakyReluAttrs>();
  attrs->alpha = alpha;
  return make_call("nn.leaky_relu", {std::move(data)}, attrs, std::move(span));
}

Expr prelu(Expr data, Expr alpha, int64_t axis, Span span) {
  auto attrs = make_object<PReluAttrs>();
  attrs->axis = axis;
  return make_call("nn.prelu", {std::move(data), std::move(alpha)}, attrs, std::move(span));
}

Expr clip(Expr data, double a_min, double a_max, Span span) {
  auto attrs = make_object<ClipAttrs>();
  attrs->a_min = a_min;
  attrs->a_max = a_max;
  return make_call("clip", {std::move(data)}, attrs, std::move(span));
}

Expr cast(Expr data, DataType dtype, Span span) {
  auto attrs = make_object<CastAttrs>();
  attrs->dtype = dtype;
  return make_call("cast", {std::move(data)}, attrs, std::move(span));
}

Expr dropout(Expr data, double rate, Span span) {
  auto attrs = make_object<DropoutAttrs>();
  attrs->rate = rate;
  return make_call("nn.dropout", {std::move(data)}, attrs, std::move(span));
}

}  // namespace headrace::ops
