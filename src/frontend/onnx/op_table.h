// The table of the ONNX operators that can be imported.
#pragma once

#include <span>

#include "frontend/onnx/node/op_row.h"

namespace headrace::onnx {

// The domain of onnxruntime's own operators, which its optimiser puts into models.
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

// Returns the row of an operator; null if it is not supported.
const OpRow* find_op_row(std::string_view domain, std::string_view name);
// Returns whether the importer has a form for the operator: a row, or its own code (If).
bool is_operator(std::string_view domain, std::string_view name);
// Returns the names of all supported operators of the default domain, or of kMicrosoftDomain, sorted.
std::vector<std::string_view> supported_ops(std::string_view domain = {});

// The rows of each family, in the file convert_<family>.cc.
std::span<const OpRow> activation_rows();     // Relu, Elu, HardSwish, Clip, PRelu, ...
std::span<const OpRow> attention_rows();      // Attention, RotaryEmbedding
std::span<const OpRow> binary_rows();         // Add, Pow, Equal, And, Where, Max, Sum, ...
std::span<const OpRow> conv_rows();           // Conv, ConvTranspose
std::span<const OpRow> creation_rows();       // Constant, ConstantOfShape, Range, EyeLike, windows
std::span<const OpRow> fourier_rows();        // DFT, STFT
std::span<const OpRow> image_rows();          // Resize, Upsample
std::span<const OpRow> index_rows();          // Gather, Slice, OneHot, Trilu, ...
std::span<const OpRow> loss_rows();           // NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss
std::span<const OpRow> matmul_rows();         // MatMul, Gemm, Einsum
std::span<const OpRow> normalization_rows();  // BatchNormalization, Softmax, LRN, ...
std::span<const OpRow> place_rows();          // NonZero, MaxUnpool, CenterCropPad, Col2Im
std::span<const OpRow> pool_rows();           // MaxPool, AveragePool, global pools
std::span<const OpRow> quantize_rows();       // QuantizeLinear, QLinearConv, MatMulInteger, ...
std::span<const OpRow> random_rows();         // RandomNormal, RandomUniform, Bernoulli, Multinomial, Dropout
std::span<const OpRow> recurrent_rows();      // LSTM, GRU, RNN
std::span<const OpRow> reduce_rows();         // ReduceSum, ArgMax, ...
std::span<const OpRow> region_rows();         // GridSample, RoiAlign, NonMaxSuppression, ...
std::span<const OpRow> shape_rows();          // Reshape, Concat, Split, Pad, ...
std::span<const OpRow> sort_rows();           // CumSum, TopK, Unique, Scatter, ScatterElements, ScatterND
std::span<const OpRow> unary_rows();          // Abs, Exp, Cast, Identity, ...

// The rows of kMicrosoftDomain.
std::span<const OpRow> microsoft_rows();            // FusedConv, FusedMatMul, BiasGelu, SkipLayerNormalization, ...
std::span<const OpRow> microsoft_attention_rows();  // Attention, MultiHeadAttention, RotaryEmbedding

}  // namespace headrace::onnx
