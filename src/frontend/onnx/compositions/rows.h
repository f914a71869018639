// The rows of operators that become several Relay ops, because Relay has no op for the whole.
#pragma once

#include <span>

#include "frontend/onnx/node/op_row.h"

namespace headrace::onnx {

// The rows of each family, in the file of its name; Mean is in fold.cc.
std::span<const OpRow> composed_activation_rows();     // Elu, HardSwish, Softplus, Gelu, ...
std::span<const OpRow> composed_attention_rows();      // Attention, RotaryEmbedding
std::span<const OpRow> composed_binary_rows();         // Mean
std::span<const OpRow> composed_loss_rows();           // SoftmaxCrossEntropyLoss
std::span<const OpRow> composed_normalization_rows();  // Hardmax, RMSNormalization, MeanVarianceNormalization, ...
std::span<const OpRow> composed_place_rows();          // MaxUnpool, CenterCropPad, Col2Im
std::span<const OpRow> composed_pool_rows();           // LpPool, GlobalLpPool
std::span<const OpRow> composed_quantize_rows();       // DynamicQuantizeLinear, QLinearConv, QLinearMatMul
std::span<const OpRow> composed_random_rows();         // Bernoulli, Multinomial
std::span<const OpRow> composed_reduce_rows();         // ReduceL1, ReduceL2, ReduceLogSumExp, ...

// The rows of onnxruntime's own domain.
std::span<const OpRow> microsoft_rows();            // FusedConv, FusedMatMul, BiasGelu, SkipLayerNormalization, ...
std::span<const OpRow> microsoft_attention_rows();  // Attention, MultiHeadAttention, RotaryEmbedding

}  // namespace headrace::onnx
