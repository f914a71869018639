#include "ir/prim_expr.h"

#include <cmath>

namespace headrace {

void BaseExprNode::fields(FieldList<BaseExprNode>& f) {
  f.field<&BaseExprNode::span>("span", {.ignore = true, .optional = true});
}

void PrimExprNode::fields(FieldList<PrimExprNode>& f) { f.field<&PrimExprNode::dtype>("dtype"); }

void IntImmNode::fields(FieldList<IntImmNode>& f) { f.field<&IntImmNode::value>("value"); }

void FloatImmNode::fields(FieldList<FloatImmNode>& f) { f.field<&FloatImmNode::value>("value"); }

void StringImmNode::fields(FieldList<StringImmNode>& f) { f.field<&StringImmNode::value>("value"); }

void PrimVarNode::fields(FieldList<PrimVarNode>& f) { f.field<&PrimVarNode::name_hint>("name_hint", {.ignore = true}); }

void BinaryNode::fields(FieldList<BinaryNode>& f) {
  f.field<&BinaryNode::op>("op").field<&BinaryNode::a>("a").field<&BinaryNode::b>("b");
}

void NotNode::fields(FieldList<NotNode>& f) { f.field<&NotNode::a>("a"); }

void SelectNode::fields(FieldList<SelectNode>& f) {
  f.field<&SelectNode::condition>("condition")
      .field<&SelectNode::true_value>("true_value")
      .field<&SelectNode::false_value>("false_value");
}

void CastNode::fields(FieldList<CastNode>& f) { f.field<&CastNode::value>("value"); }

void RampNode::fields(FieldList<RampNode>& f) { f.field<&RampNode::base>("base").field<&RampNode::stride>("stride"); }

void BroadcastNode::fields(FieldList<BroadcastNode>& f) { f.field<&BroadcastNode::value>("value"); }

void PrimLetNode::fields(FieldList<PrimLetNode>& f) {
  f.field<&PrimLetNode::value>("value")
      .field<&PrimLetNode::var>("var", {.def_once = true})
      .field<&PrimLetNode::body>("body");
}

void IntrinsicCallNode::fields(FieldList<IntrinsicCallNode>& f) {
  f.field<&IntrinsicCallNode::intrinsic>("intrinsic").field<&IntrinsicCallNode::args>("args");
}

void BufferNode::fields(FieldList<BufferNode>& f) {
  f.field<&BufferNode::name>("name", {.ignore = true})
      .field<&BufferNode::dtype>("dtype")
      .field<&BufferNode::shape>("shape")
      .field<&BufferNode::strides>("strides");
}

void BufferLoadNode::fields(FieldList<BufferLoadNode>& f) {
  f.field<&BufferLoadNode::buffer>("buffer").field<&BufferLoadNode::indices>("indices");
}

PrimExpr make_int(int64_t value, DataType dtype) {
  auto node = make_object<IntImmNode>();
  node->dtype = dtype;
  node->value = value;
  return node;
}

PrimExpr make_float(double value, DataType dtype) {
  auto node = make_object<FloatImmNode>();
  node->dtype = dtype;
  node->value = value;
  return node;
}

PrimExpr make_bool(bool value) { return make_int(value ? 1 : 0, DataType::bool_()); }

PrimExpr make_const(double value, DataType dtype) {
  if (dtype.lanes() > 1) return make_broadcast(make_const(value, dtype.element()), dtype.lanes());
  return dtype.is_float() || dtype.is_narrow_float() ? make_float(value, dtype)
                                                     : make_int(static_cast<int64_t>(value), dtype);
}

PrimVar make_prim_var(std::string name, DataType dtype) {
  auto node = make_object<PrimVarNode>();
  node->dtype = dtype;
  node->name_hint = std::move(name);
  return node;
}

PrimExpr make_any() {
  auto node = make_object<AnyNode>();
  node->dtype = kIndexType;
  return node;
}

Buffer make_buffer(std::string name, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides) {
  auto node = make_object<BufferNode>();
  node->name = std::move(name);
  node->dtype = dtype;
  node->shape = std::move(shape);
  node->strides = std::move(strides);
  return node;
}

PrimExpr make_not(PrimExpr a) {
  HEADRACE_CHECK(a->dtype.is_bool(), "the operand of not is {}", a->dtype);
  if (auto value = as_int(a)) return make_bool(*value == 0);
  auto node = make_object<NotNode>();
  node->dtype = a->dtype;
  node->a = std::move(a);
  return node;
}

PrimExpr make_select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value) {
  HEADRACE_CHECK(condition->dtype.is_bool(), "the condition of select is {}", condition->dtype);
  HEADRACE_CHECK(true_value->dtype == false_value->dtype, "the sides of select are {} and {}", true_value->dtype,
                 false_value->dtype);
  if (auto value = as_int(condition)) return *value != 0 ? true_value : false_value;
  auto node = make_object<SelectNode>();
  node->dtype = true_value->dtype;
  node->condition = std::move(condition);
  node->true_value = std::move(true_value);
  node->false_value = std::move(false_value);
  return node;
}

PrimExpr make_cast(DataType dtype, PrimExpr value) {
  if (value->dtype == dtype) return value;
  HEADRACE_CHECK(value->dtype.lanes() == dtype.lanes(), "cast of {} to {}", value->dtype, dtype);
  const bool wide = (dtype.is_int() || dtype.is_uint()) && dtype.bits() == 64;
  if (const auto* imm = value.as<IntImmNode>(); imm != nullptr && (wide || dtype.is_float()) && dtype.bits() >= 32) {
    if (!dtype.is_float()) return make_int(imm->value, dtype);
    const bool is_unsigned = imm->dtype == DataType::uint(64);
    return make_float(
        is_unsigned ? static_cast<double>(static_cast<uint64_t>(imm->value)) : static_cast<double>(imm->value), dtype);
  }
  auto node = make_object<CastNode>();
  node->dtype = dtype;
  node->value = std::move(value);
  return node;
}

PrimExpr make_ramp(PrimExpr base, PrimExpr stride, int lanes) {
  HEADRACE_CHECK(base->dtype.is_scalar() && base->dtype == stride->dtype && lanes > 1, "ramp of {} lanes", lanes);
  auto node = make_object<RampNode>();
  node->dtype = base->dtype.with_lanes(lanes);
  node->base = std::move(base);
  node->stride = std::move(stride);
  return node;
}

PrimExpr make_broadcast(PrimExpr value, int lanes) {
  HEADRACE_CHECK(value->dtype.is_scalar() && lanes >= 1, "broadcast of {} to {} lanes", value->dtype, lanes);
  if (lanes == 1) return value;
  auto node = make_object<BroadcastNode>();
  node->dtype = value->dtype.with_lanes(lanes);
  node->value = std::move(value);
  return node;
}

PrimExpr make_intrinsic(Intrinsic intrinsic, DataType dtype, Array<PrimExpr> args) {
  auto node = make_object<IntrinsicCallNode>();
  node->dtype = dtype;
  node->intrinsic = intrinsic;
  node->args = std::move(args);
  return node;
}

PrimExpr make_load(Buffer buffer, Array<PrimExpr> indices) {
  HEADRACE_CHECK(buffer->shape.size() == indices.size(), "a load of '{}' has {} indices for {} dimensions",
                 buffer->name, indices.size(), buffer->shape.size());
  auto node = make_object<BufferLoadNode>();
  const int lanes = indices.empty() ? 1 : indices.back()->dtype.lanes();
  node->dtype = buffer->dtype.with_lanes(lanes);
  node->buffer = std::move(buffer);
  node->indices = std::move(indices);
  return node;
}

PrimExpr make_prim_let(PrimVar var, PrimExpr value, PrimExpr body) {
  HEADRACE_CHECK(var->dtype == value->dtype, "let binds {} to a variable of {}", value->dtype, var->dtype);
  auto node = make_object<PrimLetNode>();
  node->dtype = body->dtype;
  node->var = std::move(var);
  node->value = std::move(value);
  node->body = std::move(body);
  return node;
}

// Makes an integer in the dtype of `like`, without going through double, which holds 53 bits.
static PrimExpr integer_like(int64_t value, const PrimExpr& like) {
  if (like->dtype.is_float()) return make_const(static_cast<double>(value), like->dtype);
  return make_broadcast(make_int(value, like->dtype.element()), like->dtype.lanes());
}

PrimExpr operator+(const PrimExpr& a, int64_t b) { return a + integer_like(b, a); }
PrimExpr operator-(const PrimExpr& a, int64_t b) { return a - integer_like(b, a); }
PrimExpr operator*(const PrimExpr& a, int64_t b) { return a * integer_like(b, a); }
PrimExpr floor_div(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::floor_div, a, b); }
PrimExpr floor_mod(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::floor_mod, a, b); }

std::optional<int64_t> as_int(const PrimExpr& e) {
  if (const auto* imm = e.as<IntImmNode>()) return imm->value;
  return std::nullopt;
}

bool is_int(const PrimExpr& e, int64_t value) { return as_int(e) == value; }
bool is_any(const PrimExpr& e) { return e.is<AnyNode>(); }

std::optional<Shape> as_shape(const Array<PrimExpr>& dims) {
  Shape shape;
  for (const PrimExpr& dim : dims) {
    const auto value = as_int(dim);
    if (!value) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

Array<PrimExpr> to_dims(const Shape& shape) {
  Array<PrimExpr> dims;
  for (const int64_t dim : shape) dims.push_back(make_int(dim));
  return dims;
}

}  // namespace headrace
