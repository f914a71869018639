// The rows of operators that one Relay op computes. Other ops adapt its operands and results: casts, reshapes, slices,
// constants. Forms of an operator that the op does not have are functions of compositions/.
#pragma once

#include <span>

#include "frontend/onnx/node/op_row.h"

namespace headrace::onnx {

// The rows of each family, in the file of its name.
std::span<const OpRow> activation_rows();     // Relu, LeakyRelu, PRelu, Clip
std::span<const OpRow> binary_rows();         // Add, Pow, Equal, And, Where, Max, Sum, ...
std::span<const OpRow> conv_rows();           // Conv, ConvTranspose
std::span<const OpRow> creation_rows();       // Constant, ConstantOfShape, Range, EyeLike, windows
std::span<const OpRow> fourier_rows();        // DFT, STFT
std::span<const OpRow> index_rows();          // Gather, Slice, OneHot, Trilu, NonZero, ...
std::span<const OpRow> loss_rows();           // NegativeLogLikelihoodLoss
std::span<const OpRow> matmul_rows();         // MatMul, Gemm, Einsum
std::span<const OpRow> normalization_rows();  // BatchNormalization, LayerNormalization, Softmax, LRN, ...
std::span<const OpRow> pool_rows();           // MaxPool, AveragePool, global pools
std::span<const OpRow> quantize_rows();       // QuantizeLinear, DequantizeLinear, MatMulInteger, ConvInteger
std::span<const OpRow> random_rows();         // RandomNormal, RandomUniform, Dropout
std::span<const OpRow> recurrent_rows();      // LSTM, GRU, RNN
std::span<const OpRow> reduce_rows();         // ReduceSum, ReduceMax, ArgMax, ...
std::span<const OpRow> region_rows();         // GridSample, AffineGrid, RoiAlign, NonMaxSuppression, ...
std::span<const OpRow> resize_rows();         // Resize, Upsample
std::span<const OpRow> shape_rows();          // Reshape, Concat, Split, Pad, ...
std::span<const OpRow> sort_rows();           // CumSum, TopK, Unique, Scatter, ScatterElements, ScatterND
std::span<const OpRow> unary_rows();          // Abs, Exp, Cast, Identity, ...

}  // namespace headrace::onnx
