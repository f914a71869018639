#include "backends/ccompiler/compile/ops.h"

#include <array>

#include "ops/op_handles.h"
#include "relay/match.h"

namespace headrace::backends::ccompiler {

namespace {

using partition::Verdict;

// The C text of an op, in which {a} and {b} are the operands, for floats and for integers; empty where the op is not
// written for them. Integers wrap: {u} is the unsigned type and {t} the type itself. {f} is "f" for float, else "".
struct Row {
  const OpHandle& op;
  std::string_view floats, integers;
};

const std::array<Row, 12>& rows() {
  static const std::array<Row, 12> all = {{
      {op::kAdd, "{a} + {b}", "({t})(({u}){a} + ({u}){b})"},
      {op::kSubtract, "{a} - {b}", "({t})(({u}){a} - ({u}){b})"},
      {op::kMultiply, "{a} * {b}", "({t})(({u}){a} * ({u}){b})"},
      {op::kDivide, "{a} / {b}", ""},
      // NaN where either is: the first comparison is false for NaN in `b`.
      {op::kMaximum, "{a} > {b} || {a} != {a} ? {a} : {b}", "{a} > {b} ? {a} : {b}"},
      {op::kMinimum, "{a} < {b} || {a} != {a} ? {a} : {b}", "{a} < {b} ? {a} : {b}"},
      {op::kNegative, "-{a}", "({t})(0u - ({u}){a})"},
      {op::kAbs, "fabs{f}({a})", "{a} < 0 ? ({t})(0u - ({u}){a}) : {a}"},
      {op::kRelu, "{a} > 0 || {a} != {a} ? {a} : 0", "{a} > 0 ? {a} : 0"},
      {op::kSqrt, "sqrt{f}({a})", ""},
      {op::kExp, "exp{f}({a})", ""},
      {op::kTanh, "tanh{f}({a})", ""},
  }};
  return all;
}

const Row* row_of(const relay::CallNode& call) {
  for (const Row& row : rows()) {
    if (relay::is_call(call, row.op)) return &row;
  }
  return nullptr;
}

struct CType {
  DataType dtype;
  std::string_view name, unsigned_name;
};

const CType* c_type_of(DataType dtype) {
  static const std::array<CType, 4> all = {{
      {DataType::float_(32), "float", ""},
      {DataType::float_(64), "double", ""},
      {DataType::int_(32), "int32_t", "uint32_t"},
      {DataType::int_(64), "int64_t", "uint64_t"},
  }};
  for (const CType& one : all) {
    if (one.dtype == dtype) return &one;
  }
  return nullptr;
}

Verdict no(hr_reason reason, std::string message) { return {.reason = reason, .message = std::move(message)}; }

Verdict check_operand(const Expr& value) {
  if (Verdict verdict = takes(value->checked_type()); !verdict.ok()) return verdict;
  const auto* constant = value.as<relay::ConstantNode>();
  if (constant != nullptr && constant->data.num_elements() > kMostConstantElements)
    return no(HR_REASON_SHAPE_UNSUPPORTED,
              fmt::format("a constant of it has {} elements, which are too many for a text "
                          "of C; the most are {}",
                          constant->data.num_elements(), kMostConstantElements));
  return {};
}

}  // namespace

Verdict takes(const Type& value) {
  const auto* type = value.as<TensorTypeNode>();
  if (type == nullptr) return no(HR_REASON_OP_UNSUPPORTED, "one of its operands is a tuple or a function");
  if (c_type_of(type->dtype) == nullptr)
    return no(HR_REASON_DTYPE_UNSUPPORTED,
              fmt::format("it is of {}; the backend takes float32, float64, int32 and int64", type->dtype));
  if (!as_shape(type->shape)) return no(HR_REASON_DYNAMIC_UNSUPPORTED, "a size of it is not a number");
  if (type->shape.size() > kMaxRank)
    return no(HR_REASON_SHAPE_UNSUPPORTED,
              fmt::format("it has {} dimensions, more than {}", type->shape.size(), kMaxRank));
  return {};
}

Verdict supports(const relay::CallNode& call) {
  const Row* row = row_of(call);
  if (row == nullptr) return no(HR_REASON_OP_UNSUPPORTED, "the backend has no C text for this op");
  for (const Expr& arg : call.args) {
    if (Verdict verdict = check_operand(arg); !verdict.ok()) return verdict;
  }
  const DataType dtype = relay::tensor_type_of(call.args[0])->dtype;
  if ((dtype.is_float() ? row->floats : row->integers).empty())
    return no(HR_REASON_DTYPE_UNSUPPORTED, fmt::format("the backend has no C text for this op of {}", dtype));
  return takes(call.checked_type());
}

std::string element_text(const relay::CallNode& call, const std::string& a, const std::string& b) {
  const Row& row = *row_of(call);
  const CType& type = *c_type_of(relay::tensor_type_of(call.args[0])->dtype);
  const bool is_float = type.dtype.is_float();
  return fmt::format(fmt::runtime(is_float ? row.floats : row.integers), fmt::arg("a", a), fmt::arg("b", b),
                     fmt::arg("t", type.name), fmt::arg("u", type.unsigned_name),
                     fmt::arg("f", type.dtype == DataType::float_(32) ? "f" : ""));
}

std::string_view c_type(DataType dtype) { return c_type_of(dtype)->name; }

}  // namespace headrace::backends::ccompiler
