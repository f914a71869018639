#include "ops/tensor/broadcast.h"

#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index.h"
#include "relay/match.h"

namespace headrace::ops {

void BiasAddAttrs::fields(FieldList<BiasAddAttrs>& f) {
  f.field<&BiasAddAttrs::axis>("axis",
                               {.default_value = 1, .has_default = true, .doc = "the axis that the bias is along"});
}

namespace {

using relay::make_call;
using Values = std::optional<std::vector<PrimExpr>>;

// ---- type relations

bool has_integers(DataType dtype) { return dtype.is_int() || dtype.is_uint(); }

// Operands that satisfy `allowed`, of one dtype; the result has that dtype, or bool.
TypeRelationFn relate_broadcast(bool (*allowed)(DataType), const char* wanted, bool gives_bool) {
  return [=](const RelationInput& input) -> Type {
    const TensorType a = input.tensor(0), b = input.tensor(1);
    if (!a || !b) return {};
    check_same_dtype(input, a, b, "rhs");
    if (!allowed(a->dtype)) input.fail(fmt::format("operands must be {}, got {} and {}", wanted, show(a), show(b)));
    return make_tensor_type(broadcast_shapes(input, a, b), gives_bool ? DataType::bool_() : a->dtype);
  };
}

Type relate_where(const RelationInput& input) {
  const TensorType condition = input.tensor(0), x = input.tensor(1), y = input.tensor(2);
  if (!condition || !x || !y) return {};
  check_same_dtype(input, x, y, "y");
  const TensorType both = make_tensor_type(broadcast_shapes(input, x, y), x->dtype);
  return make_tensor_type(broadcast_shapes(input, condition, both), x->dtype);
}

Type relate_bias_add(const RelationInput& input) {
  const TensorType data = input.tensor(0), bias = input.tensor(1);
  if (!data) return {};
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  const size_t axis = normal_axis(input, input.call.attrs_as<BiasAddAttrs>().axis, data->shape.size());
  if (!bias) {
    input.assume(1, make_tensor_type(Array<PrimExpr>{data->shape[axis]}, data->dtype));
    return {};
  }
  check_same_dtype(input, data, bias, "bias");
  if (bias->shape.size() != 1 || !unify_dims(bias->shape[0], data->shape[axis])) {
    input.fail(fmt::format("bias must have shape ({}), axis {} of data {}, got {}", to_string(data->shape[axis]), axis,
                           show(data), show(bias)));
  }
  return data;
}

// ---- the functions

// Computes integers on unsigned numbers, where C++ defines wrap-around.
template <typename C, typename F>
C wrap(C a, C b, F f) {
  if constexpr (is_floating<C>) {
    return f(a, b);
  } else {
    return static_cast<C>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }
}

// Returns whether an integer quotient traps: x / 0 is defined as 0, and the least integer / -1 wraps to itself.
template <typename C>
bool quotient_traps(C a, C b, C* quotient) {
  if (b == 0) {
    *quotient = 0;
    return true;
  }
  if constexpr (std::is_signed_v<C>) {
    if (b == -1 && a == std::numeric_limits<C>::min()) {
      *quotient = a;
      return true;
    }
  }
  return false;
}

template <typename C>
C trunc_quotient(C a, C b) {
  if constexpr (is_floating<C>) {
    return std::trunc(a / b);
  } else {
    C quotient = 0;
    return quotient_traps(a, b, &quotient) ? quotient : static_cast<C>(a / b);
  }
}

template <typename C>
C trunc_remainder(C a, C b) {
  if constexpr (is_floating<C>) {
    return std::fmod(a, b);
  } else {
    C quotient = 0;
    return quotient_traps(a, b, &quotient) ? C{0} : static_cast<C>(a % b);
  }
}

template <typename C>
C floor_quotient(C a, C b) {
  if constexpr (is_floating<C>) {
    return std::floor(a / b);
  } else {
    const C quotient = trunc_quotient(a, b), remainder = trunc_remainder(a, b);
    return static_cast<C>(remainder != 0 && (remainder < 0) != (b < 0) ? quotient - 1 : quotient);
  }
}

template <typename C>
C floor_remainder(C a, C b) {
  const C remainder = trunc_remainder(a, b);
  return static_cast<C>(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

template <typename C>
C power_of(C a, C b) {
  if constexpr (is_floating<C>) {
    return std::pow(a, b);
  } else {
    // A negative exponent truncates the quotient 1 / a^-b.
    if constexpr (std::is_signed_v<C>) {
      if (b < 0) return static_cast<C>(a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
    }
    uint64_t result = 1, base = static_cast<uint64_t>(a);
    for (auto exponent = static_cast<uint64_t>(b); exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) result *= base;
      base *= base;
    }
    return static_cast<C>(result);
  }
}

// Shifts; a count at or past the width shifts everything out, and a negative count counts as past the width.
template <typename C>
C shift_left(C a, C b) {
  return static_cast<uint64_t>(b) < sizeof(C) * 8 ? static_cast<C>(static_cast<uint64_t>(a) << static_cast<uint64_t>(b))
                                                  : C{0};
}

template <typename C>
C shift_right(C a, C b) {
  const uint64_t width = sizeof(C) * 8;
  if (static_cast<uint64_t>(b) < width) return static_cast<C>(a >> b);
  return a < 0 ? static_cast<C>(-1) : C{0};
}

template <typename C>
C greater_of(C a, C b) {
  if (a != a) return a;
  return b != b || b > a ? b : a;
}

template <typename C>
C lesser_of(C a, C b) {
  if (a != a) return a;
  return b != b || b < a ? b : a;
}

// ---- eval

// Computes an op for `count` pairs of elements.
template <typename C, typename R>
using PairsFn = void (*)(const C* a, const C* b, R* y, int64_t count);

// Walks the elements. The walk is compiled once for each dtype and hands blocks to a function of each op: compiled into
// each op it took most of the room's build time. Elements of long rows are passed in place.
template <typename In, typename Out>
class PairWalk {
  using C = Compute<In>;
  using R = Compute<Out>;

 public:
  // Computes all of `out`, in parts along its first axis.
  static void run(const EvalInput& input, const NDArray& out, PairsFn<C, R> f) {
    Shape shape = out.shape();
    std::array<Shape, 2> strides{broadcast_strides(input.args[0].shape(), shape),
                                 broadcast_strides(input.args[1].shape(), shape)};
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
    join_axes(shape, strides);
    const int64_t inner = out.num_elements() / shape[0];
    input.for_each_part(shape[0], static_cast<double>(inner), [&](int64_t begin, int64_t end) {
      Shape part = shape;
      part[0] = end - begin;
      PairWalk walk(input, out, f);
      walk.origin_ = {begin * strides[0][0], begin * strides[1][0]};
      walk.done_ = begin * inner;
      walk.walk(part, strides);
    });
  }

 private:
  PairWalk(const EvalInput& input, const NDArray& out, PairsFn<C, R> f)
      : a_(input.args[0]), b_(input.args[1]), y_(out), f_(f) {}

  void walk(const Shape& shape, const std::array<Shape, 2>& strides) {
    const auto row = [](void* walk, const int64_t* begin, const int64_t* step, int64_t size) {
      static_cast<PairWalk*>(walk)->add_row(begin, step, size);
    };
    walk_rows(shape, strides, row, this);
    flush();
  }

  static constexpr int64_t kBlock = 256, kLong = 32;

  void add_row(const int64_t* begin, const int64_t* step, int64_t size) {
    if (size >= kLong) flush();
    for (int64_t i = 0; i < size;) {
      const int64_t n = std::min(size - i, kBlock - count_);
      const int64_t a = origin_[0] + begin[0] + i * step[0], b = origin_[1] + begin[1] + i * step[1];
      if (size >= kLong) {
        compute(block(a_, a, step[0], n, lhs_.data()), block(b_, b, step[1], n, rhs_.data()), n);
      } else {
        read(a_, a, step[0], n, lhs_.data() + count_);
        read(b_, b, step[1], n, rhs_.data() + count_);
        count_ += n;
        if (count_ == kBlock) flush();
      }
      i += n;
    }
  }

  static void read(const Elements<In>& from, int64_t begin, int64_t step, int64_t n, C* to) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[begin + i * step];
  }

  // Returns the elements in place, or else copied to `buffer`.
  static const C* block(const Elements<In>& from, int64_t begin, int64_t step, int64_t n, C* buffer) {
    if constexpr (std::is_same_v<In, C>) {
      if (step == 1) return from.data + begin;
    }
    read(from, begin, step, n, buffer);
    return buffer;
  }

  void compute(const C* a, const C* b, int64_t n) {
    if constexpr (std::is_same_v<Out, R>) {
      f_(a, b, y_.data + done_, n);
    } else {
      f_(a, b, results_.data(), n);
      for (int64_t i = 0; i < n; ++i) y_.set(done_ + i, results_[static_cast<size_t>(i)]);
    }
    done_ += n;
  }

  void flush() {
    compute(lhs_.data(), rhs_.data(), count_);
    count_ = 0;
  }

  const Elements<In> a_, b_;
  const Elements<Out> y_;
  const PairsFn<C, R> f_;
  std::array<C, kBlock> lhs_, rhs_;
  std::array<R, kBlock> results_;
  std::array<int64_t, 2> origin_{};  // offset of the part in each operand
  int64_t done_ = 0, count_ = 0;     // elements that are written, and that wait in the buffers
};

// F: a lambda without captures.
template <typename In, typename Out, typename F>
void walk_binary(const EvalInput& input, const NDArray& out, F) {
  using C = Compute<In>;
  using R = Compute<Out>;
  PairWalk<In, Out>::run(input, out, [](const C* a, const C* b, R* y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(F{}(a[i], b[i]));
  });
}

template <typename F>
EvalFn eval_arithmetic(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    dispatch_any(out.dtype(), [&]<typename T>() { walk_binary<T, T>(input, out, f); });
    return std::vector<NDArray>{out};
  };
}

template <typename F>
EvalFn eval_integer(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    dispatch_int(out.dtype(), [&]<typename T>() { walk_binary<T, T>(input, out, f); });
    return std::vector<NDArray>{out};
  };
}

template <typename F>
EvalFn eval_comparison(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    dispatch_any(input.args[0].dtype(), [&]<typename T>() { walk_binary<T, Bool8>(input, out, f); });
    return std::vector<NDArray>{out};
  };
}

// Combines the bits of integers, or the truth values of bools.
template <typename F>
EvalFn eval_bits(F f) {
  return [f](const EvalInput& input) {
    const NDArray out = input.make_output();
    if (out.dtype().is_bool()) {
      walk_binary<Bool8, Bool8>(input, out, f);
    } else {
      dispatch_int(out.dtype(), [&]<typename T>() { walk_binary<T, T>(input, out, f); });
    }
    return std::vector<NDArray>{out};
  };
}

// Returns which elements are not 0, as bool.
NDArray not_zero(const NDArray& tensor) {
  if (tensor.dtype().is_bool()) return tensor;
  const NDArray result = NDArray::empty(tensor.shape(), DataType::bool_());
  const Elements<Bool8> is_set(result);
  dispatch_number(tensor.dtype(), [&]<typename T>() {
    const Elements<T> x(tensor);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) is_set.set(i, x[i] != 0);
  });
  return result;
}

std::vector<NDArray> eval_where(const EvalInput& input) {
  const NDArray out = input.make_output(), chosen = not_zero(input.args[0]);
  std::array<Shape, 3> strides;
  for (size_t k = 0; k < 3; ++k) strides[k] = broadcast_strides(input.args[k].shape(), out.shape());
  dispatch_copied(out.dtype(), [&]<typename T>() {
    const Elements<Bool8> condition(chosen);
    const Elements<T> x(input.args[1]), y(input.args[2]), z(out);
    int64_t i = 0;
    for_each_offset<3>(out.shape(), strides,
                       [&](const auto& at) { z.set(i++, condition[at[0]] != 0 ? x[at[1]] : y[at[2]]); });
  });
  return {out};
}

std::vector<NDArray> eval_bias_add(const EvalInput& input) {
  const NDArray out = input.make_output();
  const Shape& shape = out.shape();
  const size_t axis = normal_axis(input.attrs<BiasAddAttrs>().axis, shape.size());
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), bias(input.args[1]), y(out);
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      y.set(i, wrap(x[i], bias[i / inner % shape[axis]], [](auto a, auto b) { return a + b; }));
    }
  });
  return {out};
}

// ---- value inference

// Calls the body for each element of the result with the positions of the operands' elements; returns nothing where a
// shape is not known. An operand with known values has a known shape.
template <size_t N>
std::optional<std::vector<std::array<int64_t, N>>> broadcast_places(const RelationInput& input) {
  Array<PrimExpr> dims;
  std::array<Shape, N> shapes, strides;
  for (size_t k = 0; k < N; ++k) {
    const TensorType type = input.tensor(k);
    const auto shape = type ? as_shape(type->shape) : std::nullopt;
    if (!shape) return std::nullopt;
    shapes[k] = *shape;
    dims = k == 0 ? type->shape
                  : broadcast_shapes(input, make_tensor_type(dims, type->dtype), make_tensor_type(*shape, type->dtype));
  }
  const auto out = as_shape(dims);
  if (!out) return std::nullopt;
  for (size_t k = 0; k < N; ++k) strides[k] = broadcast_strides(shapes[k], *out);
  std::vector<std::array<int64_t, N>> places;
  for_each_offset<N>(*out, strides, [&](const auto& at) {
    std::array<int64_t, N> place;
    for (size_t k = 0; k < N; ++k) place[k] = at[k];
    places.push_back(place);
  });
  return places;
}

Values infer_pairwise(const RelationInput& input, PrimExpr (*f)(const PrimExpr&, const PrimExpr&)) {
  const auto a = input.arg_value(0), b = input.arg_value(1);
  if (!a || !b) return std::nullopt;
  const auto places = broadcast_places<2>(input);
  if (!places) return std::nullopt;
  std::vector<PrimExpr> result;
  for (const auto& [i, j] : *places) {
    const PrimExpr &x = a->at(static_cast<size_t>(i)), &y = b->at(static_cast<size_t>(j));
    if (x->dtype != y->dtype) return std::nullopt;
    result.push_back(f(x, y));
  }
  return result;
}

template <BinaryOp op>
Values infer_binary(const RelationInput& input) {
  return infer_pairwise(input, [](const PrimExpr& a, const PrimExpr& b) { return make_binary(op, a, b); });
}

// Infers a division; the value is unknown unless the divisor is known not to be zero.
template <BinaryOp op>
Values infer_quotient(const RelationInput& input) {
  const auto divisors = input.arg_value(1);
  if (!divisors) return std::nullopt;
  for (const PrimExpr& divisor : *divisors) {
    const auto value = as_int(divisor);
    if (!value || *value == 0) return std::nullopt;
  }
  return infer_binary<op>(input);
}

// Dimensions that are provably equal compare equal; other symbolic comparisons are not folded.
template <BinaryOp op>
Values infer_comparison(const RelationInput& input) {
  return infer_pairwise(input, [](const PrimExpr& a, const PrimExpr& b) {
    if (arith::is_equal(a, b)) return make_bool(op == BinaryOp::eq || op == BinaryOp::le || op == BinaryOp::ge);
    return make_binary(op, a, b);
  });
}

Values infer_where(const RelationInput& input) {
  const auto condition = input.arg_value(0), x = input.arg_value(1), y = input.arg_value(2);
  if (!condition || !x || !y) return std::nullopt;
  const auto places = broadcast_places<3>(input);
  if (!places) return std::nullopt;
  std::vector<PrimExpr> result;
  for (const auto& place : *places) {
    const PrimExpr test = condition->at(static_cast<size_t>(place[0])), a = x->at(static_cast<size_t>(place[1])),
                   b = y->at(static_cast<size_t>(place[2]));
    const auto chosen = as_int(test);
    if (chosen) {
      result.push_back(*chosen != 0 ? a : b);
    } else if (arith::is_equal(a, b)) {
      result.push_back(a);
    } else {
      result.push_back(test->dtype.is_bool() && a->dtype == b->dtype ? make_select(test, a, b) : make_any());
    }
  }
  return result;
}

// ---- registration

bool allow_numbers(DataType dtype) { return !dtype.is_bool(); }
bool allow_any(DataType) { return true; }
bool allow_bool(DataType dtype) { return dtype.is_bool(); }
bool allow_bits(DataType dtype) { return has_integers(dtype) || dtype.is_bool(); }

struct Kind {
  bool (*allowed)(DataType);
  const char* wanted;
  bool gives_bool;
};
constexpr Kind kArithmetic{allow_numbers, "numbers", false};
constexpr Kind kExtremum{allow_any, "numbers or bool", false};
constexpr Kind kComparison{allow_any, "numbers or bool", true};
constexpr Kind kLogical{allow_bool, "bool", false};
constexpr Kind kBits{allow_bits, "integers or bool", false};
constexpr Kind kShift{has_integers, "integers", false};

// Returns whether the other operand is one value for all indices of the axis: it has no such axis, or one index of it.
bool is_broadcast_along(const relay::CallNode& call, const UnknownAxis& where) {
  const auto other = relay::known_shape_of(call.args[1 - where.arg]);
  if (!other) return false;
  const size_t from_end = relay::tensor_type_of(call.args[where.arg])->shape.size() - where.axis;
  return other->size() < from_end || (*other)[other->size() - from_end] == 1;
}

// An integer behind the indices that count may be 0.
bool divides_apart(const relay::CallNode& call, const UnknownAxis& where) {
  const auto* type = relay::tensor_type_of(call.args[1 - where.arg]);
  return type != nullptr && type->dtype.is_float() && is_broadcast_along(call, where);
}

OpBuilder binary_op(const char* name, const char* what, const Kind& kind, EvalFn eval) {
  OpBuilder op(name, fmt::format("{}: lhs T[...], rhs T[...] ({}) -> {}[...], shapes broadcast as numpy's do.", what,
                                 kind.wanted, kind.gives_bool ? "bool" : "T"));
  op.arg("lhs", "Tensor", fmt::format("T[...], {}: the left operand", kind.wanted))
      .arg("rhs", "Tensor", fmt::format("T[...], {}, which broadcasts: the right operand", kind.wanted))
      .relation(relate_broadcast(kind.allowed, kind.wanted, kind.gives_bool))
      .fusion(FusionKind::broadcast)
      .eval(std::move(eval));
  return op;
}

void register_arithmetic() {
  auto wrapping = [](auto f) { return eval_arithmetic([](auto a, auto b) { return wrap(a, b, decltype(f){}); }); };
  binary_op("add", "lhs + rhs, integers wrap", kArithmetic, wrapping([](auto a, auto b) { return a + b; }))
      .value(infer_binary<BinaryOp::add>)
      .fact(kTreatsApart, is_broadcast_along);
  binary_op("subtract", "lhs - rhs, integers wrap", kArithmetic, wrapping([](auto a, auto b) { return a - b; }))
      .value(infer_binary<BinaryOp::sub>)
      .fact(kTreatsApart, is_broadcast_along);
  binary_op("multiply", "lhs * rhs, integers wrap", kArithmetic, wrapping([](auto a, auto b) { return a * b; }))
      .value(infer_binary<BinaryOp::mul>)
      .fact(kTreatsApart, is_broadcast_along);
  binary_op("divide", "lhs / rhs, integers truncate, x / 0 of integers is 0", kArithmetic,
            eval_arithmetic([](auto a, auto b) {
              if constexpr (is_floating<decltype(a)>) {
                return a / b;
              } else {
                return trunc_quotient(a, b);
              }
            }))
      .value(infer_quotient<BinaryOp::div>)
      .fact(kTreatsApart, divides_apart);
  binary_op("power", "lhs to the power rhs, integers wrap", kArithmetic,
            eval_arithmetic([](auto a, auto b) { return power_of(a, b); }));
  binary_op("maximum", "The greater, NaN where either is", kExtremum,
            eval_arithmetic([](auto a, auto b) { return greater_of(a, b); }))
      .value(infer_binary<BinaryOp::max>)
      .fact(kTreatsApart, is_broadcast_along);
  binary_op("minimum", "The lesser, NaN where either is", kExtremum,
            eval_arithmetic([](auto a, auto b) { return lesser_of(a, b); }))
      .value(infer_binary<BinaryOp::min>)
      .fact(kTreatsApart, is_broadcast_along);
}

void register_divisions() {
  binary_op("trunc_divide", "The quotient rounded toward zero, x / 0 of integers is 0", kArithmetic,
            eval_arithmetic([](auto a, auto b) { return trunc_quotient(a, b); }))
      .value(infer_quotient<BinaryOp::div>);
  binary_op("floor_divide", "The quotient rounded down, x / 0 of integers is 0", kArithmetic,
            eval_arithmetic([](auto a, auto b) { return floor_quotient(a, b); }))
      .value(infer_quotient<BinaryOp::floor_div>);
  for (const char* name : {"mod", "trunc_mod"}) {
    binary_op(name, "The remainder with lhs's sign, x mod 0 of integers is 0", kArithmetic,
              eval_arithmetic([](auto a, auto b) { return trunc_remainder(a, b); }))
        .value(infer_quotient<BinaryOp::mod>);
  }
  binary_op("floor_mod", "The remainder with rhs's sign, x mod 0 of integers is 0", kArithmetic,
            eval_arithmetic([](auto a, auto b) { return floor_remainder(a, b); }))
      .value(infer_quotient<BinaryOp::floor_mod>);
}

void register_comparisons() {
  binary_op("equal", "lhs == rhs", kComparison, eval_comparison([](auto a, auto b) { return a == b; }))
      .value(infer_comparison<BinaryOp::eq>);
  binary_op("not_equal", "lhs != rhs", kComparison, eval_comparison([](auto a, auto b) { return a != b; }))
      .value(infer_comparison<BinaryOp::ne>);
  binary_op("less", "lhs < rhs", kComparison, eval_comparison([](auto a, auto b) { return a < b; }))
      .value(infer_comparison<BinaryOp::lt>);
  binary_op("less_equal", "lhs <= rhs", kComparison, eval_comparison([](auto a, auto b) { return a <= b; }))
      .value(infer_comparison<BinaryOp::le>);
  binary_op("greater", "lhs > rhs", kComparison, eval_comparison([](auto a, auto b) { return a > b; }))
      .value(infer_comparison<BinaryOp::gt>);
  binary_op("greater_equal", "lhs >= rhs", kComparison, eval_comparison([](auto a, auto b) { return a >= b; }))
      .value(infer_comparison<BinaryOp::ge>);
}

void register_logicals() {
  binary_op("logical_and", "lhs and rhs", kLogical, eval_bits([](auto a, auto b) { return a & b; }));
  binary_op("logical_or", "lhs or rhs", kLogical, eval_bits([](auto a, auto b) { return a | b; }));
  binary_op("logical_xor", "lhs or rhs, not both", kLogical, eval_bits([](auto a, auto b) { return a ^ b; }));
  binary_op("bitwise_and", "lhs & rhs", kBits, eval_bits([](auto a, auto b) { return a & b; }));
  binary_op("bitwise_or", "lhs | rhs", kBits, eval_bits([](auto a, auto b) { return a | b; }));
  binary_op("bitwise_xor", "lhs ^ rhs", kBits, eval_bits([](auto a, auto b) { return a ^ b; }));
  binary_op("left_shift", "lhs << rhs; 0 when rhs is outside [0, bits)", kShift,
            eval_integer([](auto a, auto b) { return shift_left(a, b); }));
  binary_op("right_shift", "lhs >> rhs, signed ones keep their sign; all sign bits when rhs is outside [0, bits)",
            kShift, eval_integer([](auto a, auto b) { return shift_right(a, b); }));
}

}  // namespace

void register_broadcast_ops() {
  register_arithmetic();
  register_divisions();
  register_comparisons();
  register_logicals();
  OpBuilder("where",
            "x where condition is not 0, else y: condition bool[...] or numbers, x T[...], y T[...] -> T[...], all "
            "three broadcast.")
      .arg("condition", "Tensor", "bool[...], or numbers, where 0 is false and any other is true: which of the two")
      .arg("x", "Tensor", "T[...]: the values where it is true")
      .arg("y", "Tensor", "T[...]: the values where it is false")
      .relation(relate_where)
      .fusion(FusionKind::broadcast)
      .level(4)
      .eval(eval_where)
      .value(infer_where);
  OpBuilder("nn.bias_add", "data + bias along `axis`: data T[..., C, ...], bias T[C] -> data's type.")
      .arg("data", "Tensor", "T[..., C, ...], numbers: the tensor")
      .arg("bias", "Tensor", "T[C]: the value that is added to each channel")
      .attrs<BiasAddAttrs>()
      .relation(relate_bias_add)
      .fusion(FusionKind::broadcast)
      .eval(eval_bias_add)
      .keeps_layout_but_axis<BiasAddAttrs>();
}

Expr binary(std::string_view op, Expr lhs, Expr rhs, Span span) {
  return make_call(op, {std::move(lhs), std::move(rhs)}, {}, std::move(span));
}
Expr add(Expr lhs, Expr rhs, Span span) { return binary("add", std::move(lhs), std::move(rhs), std::move(span)); }
Expr subtract(Expr lhs, Expr rhs, Span span) {
  return binary("subtract", std::move(lhs), std::move(rhs), std::move(span));
}
Expr multiply(Expr lhs, Expr rhs, Span span) {
  return binary("multiply", std::move(lhs), std::move(rhs), std::move(span));
}
Expr divide(Expr lhs, Expr rhs, Span span) { return binary("divide", std::move(lhs), std::move(rhs), std::move(span)); }

Expr where(Expr condition, Expr x, Expr y, Span span) {
  return make_call("where", {std::move(condition), std::move(x), std::move(y)}, {}, std::move(span));
}

Expr bias_add(Expr data, Expr bias, int64_t axis, Span span) {
  auto attrs = make_object<BiasAddAttrs>();
  attrs->axis = axis;
  return make_call("nn.bias_add", {std::move(data), std::move(bias)}, attrs, std::move(span));
}

}  // namespace headrace::ops
