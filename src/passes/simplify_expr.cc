#include "passes/simplify_expr.h"

#include <cmath>
#include <numeric>

#include "interp/interp.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/pad.h"
#include "ops/shape.h"
#include "ops/slice.h"
#include "passes/for_each_function.h"
#include "passes/joined_constants.h"
#include "relay/infer/type_match.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// A call whose operands are simplified and typed.
struct Site {
  const CallNode& call;
  const Type& type;  // of the call

  std::string_view op() const { return call.as_op()->name; }
  Expr arg(size_t i) const { return call.args[i]; }
  bool has_type_of(const Expr& expr) const { return relay::same_type(type, expr->checked_type()); }
  // The operand, if it may stand for the call: a law never changes a type.
  Expr operand(size_t i) const { return has_type_of(arg(i)) ? arg(i) : Expr(); }
  std::optional<Shape> shape() const { return static_shape(type); }

  static std::optional<Shape> static_shape(const Type& type) {
    const auto* tensor = type.as<TensorTypeNode>();
    return tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
  }
};

const CallNode* as_call_of(const Expr& expr, std::string_view op) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->as_op() != nullptr && call->as_op()->name == op ? call : nullptr;
}

bool all_elements_are(const Expr& expr, double value) {
  // Large ones are no constants (FoldConstant).
  if (as_call_of(expr, "zeros") != nullptr) return value == 0;
  if (as_call_of(expr, "ones") != nullptr) return value == 1;
  const auto* full = as_call_of(expr, "full");
  const auto* constant = full == nullptr ? expr.as<ConstantNode>() : full->args[0].as<ConstantNode>();
  if (constant == nullptr) return false;
  if (full != nullptr && constant->data.dtype() != expr->checked_type().as<TensorTypeNode>()->dtype) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_double(data.tensor(), i) != value) return false;
  }
  return true;
}

bool all_are(const Shape& shape, int64_t value) {
  return std::all_of(shape.begin(), shape.end(), [&](int64_t v) { return v == value; });
}

// x + 0 == 0 + x == x - 0 == x
Expr drop_zero(const Site& s) {
  if (all_elements_are(s.arg(1), 0)) return s.operand(0);
  return s.op() == "add" && all_elements_are(s.arg(0), 0) ? s.operand(1) : Expr();
}

// x * 1 == 1 * x == x / 1 == pow(x, 1) == x
Expr drop_one(const Site& s) {
  if (all_elements_are(s.arg(1), 1)) return s.operand(0);
  return s.op() == "multiply" && all_elements_are(s.arg(0), 1) ? s.operand(1) : Expr();
}

NDArray constant_data(const Expr& constant) { return constant.as<ConstantNode>()->data; }

// The value of a binary call of constants; nothing when it is no good, or larger than both.
std::optional<NDArray> joined(const Expr& call) {
  const CallNode& binary = *call.as<CallNode>();
  const NDArray a = constant_data(binary.args[0]), b = constant_data(binary.args[1]);
  const NDArray data = interp::run_expr(call).as<NDArray>();
  const bool is_good =
      binary.as_op()->name == "multiply" ? is_good_product(a.to_dense(), b.to_dense(), data) : is_good_sum(data);
  if (!is_good || data.num_elements() > std::max(a.num_elements(), b.num_elements())) return {};
  return data;
}

// The constant and the other operand of a commutative call.
struct WithConstant {
  Expr other, constant;
};
std::optional<WithConstant> split_constant(const CallNode& call) {
  const Expr a = call.args[0], b = call.args[1];
  if (b.is<ConstantNode>() && !a.is<ConstantNode>()) return WithConstant{a, b};
  if (a.is<ConstantNode>() && !b.is<ConstantNode>()) return WithConstant{b, a};
  return std::nullopt;
}

// (x + c) + d == x + (c + d), and the same for *; up to rounding
Expr join_constants(const Site& s) {
  const auto outer = split_constant(s.call);
  const auto* inner_call = outer ? as_call_of(outer->other, s.op()) : nullptr;
  const auto inner = inner_call == nullptr ? std::nullopt : split_constant(*inner_call);
  if (!inner) return {};
  const auto data = joined(ops::binary(s.op(), inner->constant, outer->constant));
  if (!data) return {};
  return ops::binary(s.op(), inner->other, relay::make_constant(*data, s.call.span), s.call.span);
}

// bias_add(x, b) + c == x + (b' + c), where b' is b along its axis; up to rounding
Expr join_bias(const Site& s) {
  const auto outer = split_constant(s.call);
  const auto* inner = outer ? as_call_of(outer->other, "nn.bias_add") : nullptr;
  if (inner == nullptr || !inner->args[1].is<ConstantNode>() || !s.has_type_of(outer->other)) return {};
  const auto rank = s.type.as<TensorTypeNode>()->shape.size();
  const size_t axis = ops::normal_axis(inner->attrs_as<ops::BiasAddAttrs>().axis, rank);
  const NDArray bias = constant_data(inner->args[1]);
  Shape along(rank - axis, 1);
  along[0] = bias.num_elements();
  const auto data = joined(ops::add(relay::make_constant(bias.reshaped(along)), outer->constant));
  return data ? ops::add(inner->args[0], relay::make_constant(*data, s.call.span), s.call.span) : Expr();
}

// The axes of a transpose of `rank` dimensions, counted from 0.
Shape axes_of(const CallNode& call, size_t rank) {
  Shape axes = call.attrs_as<ops::TransposeAttrs>().axes;
  if (axes.empty()) {
    for (size_t i = rank; i > 0; --i) axes.push_back(static_cast<int64_t>(i) - 1);
  }
  for (int64_t& axis : axes) axis = static_cast<int64_t>(ops::normal_axis(axis, rank));
  return axes;
}

// transpose(x, 0 1 2 ...) == x; transpose(transpose(x, a), b) == transpose(x, a[b])
Expr join_transposes(const Site& s) {
  const auto* tensor = s.type.as<TensorTypeNode>();
  Shape axes = axes_of(s.call, tensor->shape.size());
  Expr data = s.arg(0);
  const auto* inner = as_call_of(data, "transpose");
  if (inner != nullptr) {
    const Shape first = axes_of(*inner, axes.size());
    for (int64_t& axis : axes) axis = first[static_cast<size_t>(axis)];
    data = inner->args[0];
  }
  if (std::is_sorted(axes.begin(), axes.end())) return data;
  return inner == nullptr ? Expr() : Expr(ops::transpose(data, axes, s.call.span));
}

constexpr std::string_view kViews[] = {"reshape", "nn.batch_flatten", "squeeze", "expand_dims"};

// The data of a call that only names the same elements differently; null for others.
Expr viewed(const Expr& expr) {
  for (const std::string_view op : kViews) {
    if (const auto* call = as_call_of(expr, op); call != nullptr && call->args.size() == 1) return call->args[0];
  }
  return {};
}

// view(x) == x where the shape is x's; view(view(x)) == x likewise; reshape(view(x), s) == reshape(x, s)
Expr join_views(const Site& s) {
  const auto shape = s.shape();
  if (s.call.args.size() != 1 || !shape) return {};
  if (s.has_type_of(s.arg(0))) return s.arg(0);
  const Expr data = viewed(s.arg(0));
  if (!data || s.has_type_of(data)) return data;
  if (s.op() != "reshape" && s.op() != "nn.batch_flatten") return {};
  const bool has_zero = std::find(shape->begin(), shape->end(), 0) != shape->end();
  return ops::reshape(data, *shape, has_zero, s.call.span);
}

// The axes of x that squeeze drops.
std::optional<std::vector<bool>> dropped_axes(const CallNode& call, const Type& data_type) {
  const auto shape = Site::static_shape(data_type);
  if (!shape) return std::nullopt;
  const Shape& axes = call.attrs_as<ops::SqueezeAttrs>().axis;
  std::vector<bool> dropped(shape->size(), false);
  for (size_t i = 0; i < dropped.size(); ++i) dropped[i] = axes.empty() && (*shape)[i] == 1;
  for (const int64_t axis : axes) dropped[ops::normal_axis(axis, dropped.size())] = true;
  return dropped;
}

// squeeze(squeeze(x, a), b) == squeeze(x, a and b)
Expr join_squeezes(const Site& s) {
  const Expr middle = s.arg(0);
  const auto* inner = as_call_of(middle, "squeeze");
  if (inner == nullptr) return {};
  const auto first = dropped_axes(*inner, inner->args[0]->checked_type());
  const auto second = dropped_axes(s.call, middle->checked_type());
  if (!first || !second) return {};
  Shape axes;
  size_t kept = 0;
  for (size_t i = 0; i < first->size(); ++i) {
    if ((*first)[i] || (*second)[kept++]) axes.push_back(static_cast<int64_t>(i));
  }
  return ops::squeeze(inner->args[0], axes, s.call.span);
}

// expand_dims(expand_dims(x, i, n), j, m) == expand_dims(x, i, n + m) where j lies within the n axes, or at their end
Expr join_expand_dims(const Site& s) {
  const auto* inner = as_call_of(s.arg(0), "expand_dims");
  if (inner == nullptr) return {};
  const auto &outer_attrs = s.call.attrs_as<ops::ExpandDimsAttrs>(), &attrs = inner->attrs_as<ops::ExpandDimsAttrs>();
  const auto rank = static_cast<int64_t>(s.type.as<TensorTypeNode>()->shape.size());
  // A negative axis counts from the end of the operand's rank, plus one.
  const int64_t middle_rank = rank - outer_attrs.num_newaxis, first_rank = middle_rank - attrs.num_newaxis;
  const int64_t j = outer_attrs.axis < 0 ? outer_attrs.axis + middle_rank + 1 : outer_attrs.axis;
  const int64_t i = attrs.axis < 0 ? attrs.axis + first_rank + 1 : attrs.axis;
  if (j < i || j > i + attrs.num_newaxis) return {};
  return ops::expand_dims(inner->args[0], i, attrs.num_newaxis + outer_attrs.num_newaxis, s.call.span);
}

DataType dtype_of(const Expr& expr) {
  const auto* type = expr->checked_type().as<TensorTypeNode>();
  return type == nullptr ? DataType() : type->dtype;
}

// Every value of `from` is a value of `to`.
bool is_exact_cast(DataType from, DataType to) {
  if (from == to) return true;
  if (from.is_bool()) return !to.is_bool();
  const bool same_kind = (from.is_int() && to.is_int()) || (from.is_uint() && to.is_uint() && !to.is_bool());
  if (same_kind) return from.bits() <= to.bits();
  const bool from_float = from.is_float() || from.is_bfloat16();
  return from_float && to.is_float() && to.bits() >= 32 && from.bits() < to.bits();
}

// cast(x, x's dtype) == copy(x) == x; cast(cast(x, t), u) == cast(x, u) where t holds every value of x's dtype
Expr join_casts(const Site& s) {
  if (s.has_type_of(s.arg(0))) return s.arg(0);
  const auto* inner = as_call_of(s.arg(0), "cast");
  if (inner == nullptr || !is_exact_cast(dtype_of(inner->args[0]), dtype_of(s.arg(0)))) return {};
  const Expr data = inner->args[0];
  return s.has_type_of(data) ? data : ops::cast(data, dtype_of(ref(&s.call)), s.call.span);
}

// concatenate((x,)) == x
Expr drop_concatenate(const Site& s) {
  const auto* tuple = s.arg(0).as<relay::TupleNode>();
  return tuple != nullptr && tuple->items.size() == 1 ? tuple->items[0] : Expr();
}

// pad(x) by nothing == x
Expr drop_pad(const Site& s) {
  const Array<Shape> widths = s.op() == "nn.pad" ? s.call.attrs_as<ops::PadAttrs>().pad_width
                                                 : s.call.attrs_as<ops::MirrorPadAttrs>().pad_width;
  const bool is_given = !widths.empty();
  return is_given && std::all_of(widths.begin(), widths.end(), [](const Shape& w) { return all_are(w, 0); })
             ? s.operand(0)
             : Expr();
}

// strided_slice(x) forwards over all of x == x
Expr drop_slice(const Site& s) {
  const auto& attrs = s.call.attrs_as<ops::StridedSliceAttrs>();
  const bool forwards = s.call.args.size() == 1 && std::all_of(attrs.strides.begin(), attrs.strides.end(),
                                                               [](int64_t stride) { return stride > 0; });
  return forwards && s.shape() ? s.operand(0) : Expr();
}

// broadcast_to(x, x's shape) == x; tile(x) once == x
Expr drop_broadcast(const Site& s) { return s.shape() ? s.operand(0) : Expr(); }

// f(f(x)) == f(x): relu, abs, ceil, floor, round, sign
Expr drop_repeated(const Site& s) { return as_call_of(s.arg(0), s.op()) != nullptr ? s.arg(0) : Expr(); }

// negative(negative(x)) == x
Expr drop_double_negative(const Site& s) {
  const auto* inner = as_call_of(s.arg(0), s.op());
  return inner == nullptr ? Expr() : inner->args[0];
}

struct Law {
  std::string_view op;
  // What the call equals, or null where the law does not apply.
  Expr (*apply)(const Site& site);
};

constexpr Law kLaws[] = {
    {"add", drop_zero},
    {"subtract", drop_zero},
    {"multiply", drop_one},
    {"divide", drop_one},
    {"power", drop_one},
    {"add", join_constants},
    {"multiply", join_constants},
    {"add", join_bias},
    {"transpose", join_transposes},
    {"reshape", join_views},
    {"nn.batch_flatten", join_views},
    {"squeeze", join_views},
    {"squeeze", join_squeezes},
    {"expand_dims", join_views},
    {"expand_dims", join_expand_dims},
    {"cast", join_casts},
    {"copy", join_casts},
    {"concatenate", drop_concatenate},
    {"nn.pad", drop_pad},
    {"nn.mirror_pad", drop_pad},
    {"strided_slice", drop_slice},
    {"broadcast_to", drop_broadcast},
    {"tile", drop_broadcast},
    {"nn.relu", drop_repeated},
    {"abs", drop_repeated},
    {"ceil", drop_repeated},
    {"floor", drop_repeated},
    {"round", drop_repeated},
    {"sign", drop_repeated},
    {"negative", drop_double_negative},
};

// if (True) a else b == a
Expr choose_branch(const relay::IfNode& branch) {
  if (!branch.cond.is<ConstantNode>()) return {};
  return all_elements_are(branch.cond, 0) ? branch.false_branch : branch.true_branch;
}

// The first law that applies to the expression; null when none does.
Expr apply_law(const Expr& expr) {
  const Type& type = expr->checked_type();
  if (const auto* branch = expr.as<relay::IfNode>()) {
    const Expr chosen = choose_branch(*branch);
    return chosen && relay::same_type(type, chosen->checked_type()) ? chosen : Expr();
  }
  const auto* call = expr.as<CallNode>();
  if (call == nullptr || call->as_op() == nullptr) return {};
  for (const Law& law : kLaws) {
    if (law.op != call->as_op()->name) continue;
    if (Expr result = law.apply({*call, type})) return result;
  }
  return {};
}

// A rewritten expression has the type of the one it stands for.
void take_type(const Expr& expr, const Expr& from) {
  if (!expr->has_checked_type() && from->has_checked_type() && !expr.is<relay::FunctionNode>())
    expr->set_checked_type(from->checked_type());
}

Expr simplify(const Expr& before, Expr after) {
  take_type(after, before);
  if (!after->has_checked_type()) return after;
  while (Expr simpler = apply_law(after)) {
    take_type(simpler, after);
    after = std::move(simpler);
  }
  return after;
}

}  // namespace

IRModule simplify_expr(const IRModule& module) { return rewrite_pure_nodes(module, simplify); }

}  // namespace headrace::passes
