#include "passes/fold/dynamic_to_static.h"

#include "arith/canonical.h"
#include "ops/image/image.h"
#include "ops/loops/index_value.h"
#include "ops/nn/pad.h"
#include "ops/op_handles.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// A call with its operands rewritten, and the type of its result.
struct DynamicCall {
  const CallNode& call;
  const CallNode& before;
  const TensorTypeNode& type;

  size_t num_args() const { return call.args.size(); }
  const Expr arg(size_t i) const { return call.args[i]; }
  std::optional<Shape> shape() const { return as_shape(type.shape); }
  // Returns the elements of argument i if it is a constant.
  std::optional<Shape> ints(size_t i) const {
    const Expr operand = arg(i);
    const auto* constant = operand.as<ConstantNode>();
    if (constant == nullptr) return std::nullopt;
    const NDArray data = constant->data.to_dense();
    Shape result;
    for (int64_t k = 0; k < data.num_elements(); ++k) result.push_back(ops::index_at(data, k));
    return result;
  }
};

// Copies the call with edited attributes and only the arguments `keep`. Keeps its type.
template <typename Attributes, typename F>
Expr with_attrs(const DynamicCall& c, const std::vector<size_t>& keep, F&& edit) {
  Array<Expr> args;
  for (const size_t i : keep) args.push_back(c.arg(i));
  return relay::make_call(c.call.op, args, copy_with(c.call.attrs_as<Attributes>(), edit), {}, c.call.span);
}

// Returns the result's sizes in the form that reshape takes: at most one is unknown, which is -1. A 0 is a size.
std::optional<Shape> reshape_sizes(const Array<PrimExpr>& dims) {
  Shape sizes;
  bool has_zero = false, has_unknown = false;
  for (const PrimExpr& dim : dims) {
    const auto value = as_int(dim);
    if (!value && has_unknown) return std::nullopt;
    has_unknown = has_unknown || !value;
    has_zero = has_zero || value == 0;
    sizes.push_back(value.value_or(-1));
  }
  if (has_unknown && has_zero) return std::nullopt;
  return sizes;
}

bool contains_zero(const Shape& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

// Returns whether -1 gives the unknown size: if the operand itself has -1 there, or if the number of elements fits for
// any value of the operand. Otherwise the reshape must stay, because it reports a mismatch when the program runs.
bool finds_unknown_size(const DynamicCall& c) {
  const auto operand = c.ints(1);
  if (operand && std::find(operand->begin(), operand->end(), -1) != operand->end()) return true;
  const auto* data = relay::tensor_type_of(c.before.args[0]);
  return !relay::has_unknown_dim(c.before.args[0]->checked_type()) &&
         !std::any_of(c.type.shape.begin(), c.type.shape.end(), is_any) &&
         arith::is_equal(arith::product(data->shape), arith::product(c.type.shape));
}

Expr fix_reshape(const DynamicCall& c) {
  const auto sizes =
      c.num_args() == 2 && (c.shape() || finds_unknown_size(c)) ? reshape_sizes(c.type.shape) : std::nullopt;
  return sizes ? Expr(ops::reshape(c.arg(0), *sizes, contains_zero(*sizes), c.call.span)) : Expr();
}

Expr fix_broadcast_to(const DynamicCall& c) {
  const auto shape = c.num_args() == 2 ? c.shape() : std::nullopt;
  return shape ? ops::broadcast_to(c.arg(0), *shape, c.call.span) : Expr();
}

Expr fix_full(const DynamicCall& c) {
  const auto shape = c.num_args() == 2 ? c.shape() : std::nullopt;
  return shape ? ops::full(c.arg(0), *shape, c.type.dtype, c.call.span) : Expr();
}

Expr fix_full_like(const DynamicCall& c) {
  const auto shape = c.shape();
  return shape ? ops::full(c.arg(1), *shape, c.type.dtype, c.call.span) : Expr();
}

template <Expr (*make)(Shape, DataType, Span)>
Expr fix_init(const DynamicCall& c) {
  const auto shape = c.num_args() == 1 ? c.shape() : std::nullopt;
  return shape ? make(*shape, c.type.dtype, c.call.span) : Expr();
}

Expr fix_tile(const DynamicCall& c) {
  const auto reps = c.num_args() == 2 ? c.ints(1) : std::nullopt;
  return reps ? ops::tile(c.arg(0), *reps, c.call.span) : Expr();
}

Expr fix_strided_slice(const DynamicCall& c) {
  if (c.num_args() < 3) return {};
  const auto begin = c.ints(1), end = c.ints(2), strides = c.num_args() > 3 ? c.ints(3) : Shape();
  if (!begin || !end || !strides) return {};
  return with_attrs<ops::StridedSliceAttrs>(c, {0}, [&](ops::StridedSliceAttrs& attrs) {
    attrs.begin = *begin;
    attrs.end = *end;
    attrs.strides = *strides;
  });
}

Expr fix_pad(const DynamicCall& c) {
  const auto widths = c.num_args() == 3 ? c.ints(1) : std::nullopt;
  if (!widths) return {};
  return with_attrs<ops::PadAttrs>(c, {0, 2}, [&](ops::PadAttrs& attrs) {
    for (size_t i = 0; i + 1 < widths->size(); i += 2) attrs.pad_width.push_back({(*widths)[i], (*widths)[i + 1]});
  });
}

Expr fix_resize2d(const DynamicCall& c) {
  const auto size = c.num_args() >= 2 ? c.ints(1) : std::nullopt;
  if (!size) return {};
  return with_attrs<ops::Resize2DAttrs>(c, {0}, [&](ops::Resize2DAttrs& attrs) { attrs.size = *size; });
}

Expr fix_reshape_like(const DynamicCall& c) {
  const auto shape = c.shape();
  return shape ? ops::reshape(c.arg(0), *shape, contains_zero(*shape), c.call.span) : Expr();
}

Expr fix_broadcast_to_like(const DynamicCall& c) {
  const auto shape = c.shape();
  return shape ? ops::broadcast_to(c.arg(0), *shape, c.call.span) : Expr();
}

struct Row {
  const OpHandle& op;
  // Returns null if too little is known.
  Expr (*fix)(const DynamicCall& call);
};
constexpr Row kRows[] = {
    {op::kReshape, fix_reshape},
    {op::kBroadcastTo, fix_broadcast_to},
    {op::kFull, fix_full},
    {op::kFullLike, fix_full_like},
    {op::kZeros, fix_init<ops::zeros>},
    {op::kZerosLike, fix_init<ops::zeros>},
    {op::kOnes, fix_init<ops::ones>},
    {op::kOnesLike, fix_init<ops::ones>},
    {op::kTile, fix_tile},
    {op::kStridedSlice, fix_strided_slice},
    {op::kPad, fix_pad},
    {op::kImageResize2D, fix_resize2d},
    {op::kReshapeLike, fix_reshape_like},
    {op::kBroadcastToLike, fix_broadcast_to_like},
};

// Returns a constant of the node's type with the inferred elements; null if an element is unknown.
Expr to_constant(const ExprNode& node, const std::vector<PrimExpr>& value) {
  const auto* type = node.checked_type().as<TensorTypeNode>();
  const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
  if (!shape || num_elements(*shape) != static_cast<int64_t>(value.size())) return {};
  NDArray data = NDArray::empty(*shape, type->dtype);
  for (size_t i = 0; i < value.size(); ++i) {
    const auto element = as_int(value[i]);
    if (!element) return {};
    set_element_int(data.tensor(), static_cast<int64_t>(i), *element);
  }
  return relay::make_constant(data, node.span);
}

Expr fix_call(const Expr& before, const Expr& after, const relay::ValueMap& values) {
  const auto* call = after.as<CallNode>();
  if (call == nullptr || call->as_op() == nullptr) return after;
  if (const auto known = values.find(before.get()); known != values.end()) {
    if (Expr constant = to_constant(*before, known->second)) return constant;
  }
  const auto* type = relay::tensor_type_of(before);
  for (const Row& row : kRows) {
    if (type == nullptr || !relay::is_call(*call, row.op)) continue;
    if (Expr fixed = row.fix({*call, *before.as<CallNode>(), *type})) return fixed;
  }
  return after;
}

}  // namespace

// Infers the whole module at once, so that the result of a function without a declared result type is inferred once,
// not for each caller.
IRModule dynamic_to_static(const IRModule& module) {
  const relay::TypedModule typed = relay::infer_type_and_values(in_order(module).module);
  const Effects effects(typed.module);
  return rewrite_bodies(typed.module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      return effects.of(before) ? after : fix_call(before, after, typed.values);
    });
  });
}

}  // namespace headrace::passes
