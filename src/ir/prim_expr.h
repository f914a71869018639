// PrimExpr: scalar expressions (vectors of them, inside loops). Dimensions of types and the loops of tir are made of
// these.
#pragma once

#include "ir/span.h"
#include "object/shape_tuple.h"
#include "tensor/data_type.h"

namespace headrace {

// Base of all expressions: PrimExpr here, relay's Expr in ir/expr.h.
struct BaseExprNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.BaseExpr";
  static constexpr int32_t child_slots = 96;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<BaseExprNode>& f);
  Span span;
};

struct PrimExprNode : BaseExprNode {
  using Parent = BaseExprNode;
  static constexpr std::string_view type_key = "ir.PrimExpr";
  static constexpr int32_t child_slots = 32;
  static void fields(FieldList<PrimExprNode>& f);
  DataType dtype;
};
using PrimExpr = Ref<PrimExprNode>;

struct IntImmNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "ir.IntImm";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  static void fields(FieldList<IntImmNode>& f);
  int64_t value = 0;  // a bool is 0 or 1; an uint64 keeps its bits
};
using IntImm = Ref<IntImmNode>;

struct FloatImmNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "ir.FloatImm";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  static void fields(FieldList<FloatImmNode>& f);
  double value = 0;
};
using FloatImm = Ref<FloatImmNode>;

struct StringImmNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "ir.StringImm";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  static void fields(FieldList<StringImmNode>& f);
  std::string value;
};

// A scalar variable: a symbolic dimension, a loop variable, a let-bound value, a pointer (dtype handle).
struct PrimVarNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Var";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  static void fields(FieldList<PrimVarNode>& f);
  std::string name_hint;
  // The symbol of dimensions that this variable of another integer dtype stands for (to_dimension). It is set once.
  mutable PrimExpr dimension;
};
using PrimVar = Ref<PrimVarNode>;

// `?`: a dimension nothing is known of. Two of them are never known to be equal.
struct AnyNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "ir.Any";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
};

enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,        // floats: true quotient; integers: truncates toward zero
  mod,        // the remainder of div
  floor_div,  // rounds toward minus infinity
  floor_mod,  // has the divisor's sign
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
};
constexpr BinaryOp greatest(BinaryOp) { return BinaryOp::logical_or; }
// Returns the operator's name: "add", "floor_div", ...
std::string_view name_of(BinaryOp op);
constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }
constexpr bool is_logical(BinaryOp op) { return op >= BinaryOp::logical_and; }

// Both operands have one dtype; a comparison's dtype is bool, with the operands' lanes.
struct BinaryNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Binary";
  static constexpr bool is_final = true;
  static void fields(FieldList<BinaryNode>& f);
  BinaryOp op = BinaryOp::add;
  PrimExpr a, b;
};

struct NotNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Not";
  static constexpr bool is_final = true;
  static void fields(FieldList<NotNode>& f);
  PrimExpr a;
};

// Both sides are evaluated, so neither may trap; use the if_then_else intrinsic to guard a load.
struct SelectNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Select";
  static constexpr bool is_final = true;
  static void fields(FieldList<SelectNode>& f);
  PrimExpr condition, true_value, false_value;
};

// Float to integer truncates toward zero and saturates; NaN becomes 0. To bool: is not zero.
struct CastNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Cast";
  static constexpr bool is_final = true;
  static void fields(FieldList<CastNode>& f);
  PrimExpr value;
};

// The vector base, base + stride, ..., of dtype.lanes() elements.
struct RampNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Ramp";
  static constexpr bool is_final = true;
  static void fields(FieldList<RampNode>& f);
  PrimExpr base, stride;
};

// The scalar `value` in every lane.
struct BroadcastNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Broadcast";
  static constexpr bool is_final = true;
  static void fields(FieldList<BroadcastNode>& f);
  PrimExpr value;
};

struct PrimLetNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Let";
  static constexpr bool is_final = true;
  static void fields(FieldList<PrimLetNode>& f);
  PrimVar var;
  PrimExpr value, body;
};

enum class Intrinsic : uint8_t {
  exp,
  log,
  log2,
  log10,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  floor,
  ceil,
  round,  // to the nearest integer, halves away from zero
  trunc,
  abs,
  pow,
  fma,
  isnan,
  isinf,
  if_then_else,  // (condition, a, b): evaluates one side only
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_not,
  shift_left,
  shift_right,
  reinterpret,  // reads the bits as another dtype of equal size
  vector_load,  // (buffer data pointer, element offset): dtype.lanes() consecutive elements, any alignment
  reduce_add,   // (vector): the sum of its lanes, lowest first
  prefetch,     // (pointer, element offset)
  hypot,        // the square root of x * x + y * y, whose squares neither overflow nor vanish
  nearbyint,    // to the nearest integer, halves to even
};
constexpr Intrinsic greatest(Intrinsic) { return Intrinsic::nearbyint; }
std::string_view name_of(Intrinsic intrinsic);

struct IntrinsicCallNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.Call";
  static constexpr bool is_final = true;
  static void fields(FieldList<IntrinsicCallNode>& f);
  Intrinsic intrinsic = Intrinsic::exp;
  Array<PrimExpr> args;
};

// A region of memory as an n-dimensional array. Strides count elements; empty strides mean dense, row-major.
struct BufferNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "tir.Buffer";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  static void fields(FieldList<BufferNode>& f);
  std::string name;
  DataType dtype;
  Array<PrimExpr> shape;
  Array<PrimExpr> strides;
};
using Buffer = Ref<BufferNode>;

struct BufferLoadNode : PrimExprNode {
  using Parent = PrimExprNode;
  static constexpr std::string_view type_key = "tir.BufferLoad";
  static constexpr bool is_final = true;
  static void fields(FieldList<BufferLoadNode>& f);
  Buffer buffer;
  // One index a dimension; the last may be a Ramp, which loads a vector.
  Array<PrimExpr> indices;
};

// Constants and variables. The default dtype of dimensions and indices is int64.
inline constexpr DataType kIndexType = DataType::int_(64);
PrimExpr make_int(int64_t value, DataType dtype = kIndexType);
PrimExpr make_float(double value, DataType dtype = DataType::float_(32));
PrimExpr make_bool(bool value);
// Makes the number `value` in any scalar or vector dtype.
PrimExpr make_const(double value, DataType dtype);
PrimVar make_prim_var(std::string name, DataType dtype = kIndexType);
PrimExpr make_any();
Buffer make_buffer(std::string name, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides = {});

// Builders check operand dtypes (InternalError when they differ) and fold constants: x + 0, 2 * 3, select(true, a, b).
PrimExpr make_binary(BinaryOp op, PrimExpr a, PrimExpr b);
PrimExpr make_not(PrimExpr a);
PrimExpr make_select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value);
PrimExpr make_cast(DataType dtype, PrimExpr value);
PrimExpr make_ramp(PrimExpr base, PrimExpr stride, int lanes);
PrimExpr make_broadcast(PrimExpr value, int lanes);
PrimExpr make_intrinsic(Intrinsic intrinsic, DataType dtype, Array<PrimExpr> args);
PrimExpr make_load(Buffer buffer, Array<PrimExpr> indices);
PrimExpr make_prim_let(PrimVar var, PrimExpr value, PrimExpr body);

inline PrimExpr operator+(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::add, a, b); }
inline PrimExpr operator-(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::sub, a, b); }
inline PrimExpr operator*(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::mul, a, b); }
PrimExpr operator+(const PrimExpr& a, int64_t b);
PrimExpr operator-(const PrimExpr& a, int64_t b);
PrimExpr operator*(const PrimExpr& a, int64_t b);
PrimExpr floor_div(const PrimExpr& a, const PrimExpr& b);
PrimExpr floor_mod(const PrimExpr& a, const PrimExpr& b);

// Returns the integer that `e` is, or nothing.
std::optional<int64_t> as_int(const PrimExpr& e);
bool is_int(const PrimExpr& e, int64_t value);
bool is_any(const PrimExpr& e);
// Returns `dims` as integers, or nothing when one is symbolic.
std::optional<Shape> as_shape(const Array<PrimExpr>& dims);
Array<PrimExpr> to_dims(const Shape& shape);
// Returns the dimension that an integer expression says. Dimensions are int64: a number of another integer dtype is
// that number, and a variable of another integer dtype stands for one symbol of its name, the same each time.
// Expressions of other dtypes stay as they are. Threads may call this for one variable at the same time.
PrimExpr to_dimension(const PrimExpr& e);
// Returns `e` with every variable in `values` replaced.
PrimExpr substitute(const PrimExpr& e, const std::unordered_map<const PrimVarNode*, PrimExpr>& values);
// Returns the text: "n * 2 + 1".
std::string to_string(const PrimExpr& e);

}  // namespace headrace
