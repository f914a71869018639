#include "frontend/onnx/compositions/fold.h"

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/same_dtype.h"
#include "ops/tensor/broadcast.h"

namespace headrace::onnx {

Expr fold(NodeContext& context, std::string_view op, bool widens) {
  check_same_dtype(context);
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  const auto operand = [&](size_t i) { return widens ? context.widened(context.input(i)) : context.input(i); };
  Expr result = operand(0);
  for (size_t i = 1; i < context.input_count(); ++i) result = ops::binary(op, result, operand(i), context.span());
  return result;
}

namespace {

// ONNX Mean (6, 8, 13).
Exprs convert_mean(NodeContext& context) {
  if (context.input_count() == 1) return {fold(context, "add", false)};
  const Expr sum = fold(context, "add", true);
  const Expr count = context.scalar(static_cast<double>(context.input_count()), context.dtype(sum));
  return {context.cast(ops::divide(sum, count, context.span()), context.dtype(context.input(0)))};
}

}  // namespace

std::span<const OpRow> composed_binary_rows() {
  static constexpr OpRow kRows[] = {
      {"Mean", convert_mean, 1, kAny},
  };
  return kRows;
}

}  // namespace headrace::onnx
