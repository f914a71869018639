#include "frontend/onnx/parts/conv.h"
#include "frontend/onnx/single/rows.h"

namespace headrace::onnx {

namespace {

// ONNX Conv (1, 11): x[N,C,spatial], w[M,C/group,kernel], optional b[M].
Exprs convert_conv(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return {with_bias(context, convolution(context, context.input(0), context.input(1)))};
}

// ONNX ConvTranspose (1, 11): x[N,C,spatial], w[C,M/group,kernel], optional b[M].
Exprs convert_conv_transpose(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return {with_bias(context, transposed_convolution(context))};
}

}  // namespace

std::span<const OpRow> conv_rows() {
  static constexpr OpRow kRows[] = {
      {"Conv", convert_conv, 2, 3},
      {"ConvTranspose", convert_conv_transpose, 2, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
