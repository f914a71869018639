#include "frontend/onnx/parts/matmul.h"
#include "frontend/onnx/single/rows.h"
#include "ops/tensor/einsum.h"

namespace headrace::onnx {

namespace {

// ONNX MatMul (1, 9, 13).
Exprs convert_matmul(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return {multiply(context, context.input(0), context.input(1))};
}

Exprs convert_gemm(NodeContext& context) { return {gemm(context)}; }

// ONNX Einsum (12).
Exprs convert_einsum(NodeContext& context) {
  const std::string equation = context.string_attr("equation", "");
  std::vector<size_t> ranks;
  for (const Expr& operand : context.inputs()) ranks.push_back(context.rank(operand));
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  try {
    ops::einsum_form(equation, ranks);
  } catch (const UserError& error) {
    context.invalid("{}", error.message());
  }
  return {ops::einsum(Array<Expr>(context.inputs()), equation, context.span())};
}

}  // namespace

std::span<const OpRow> matmul_rows() {
  static constexpr OpRow kRows[] = {
      {"MatMul", convert_matmul, 2, 2},
      {"Gemm", convert_gemm, 2, 3},
      {"Einsum", convert_einsum, 1, kAny, 12},
  };
  return kRows;
}

}  // namespace headrace::onnx
