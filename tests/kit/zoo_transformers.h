// Transformers of the zoo: BERT (Devlin et al. 2018), ViT (Dosovitskiy et al. 2020) and GPT-2 (Radford et al. 2019).
#pragma once

#include <string_view>

#include "kit/zoo_layers.h"

namespace headrace::kit::zoo {

// Version of ONNX's operators in which these networks are written, and its IR version: the first with
// LayerNormalization. GELU is spelled out in it, as in most files of such networks.
constexpr int64_t kTransformerOpset = 17;
constexpr int64_t kTransformerIrVersion = 8;

// Adds bert_base, vit_base16 or gpt2 with all its outputs. Throws UserError for a sequence that is longer than the
// table of positions and for a picture that is no whole number of patches; InternalError for another name.
void build_transformer(Net& net, std::string_view name, const Sizes& sizes);

}  // namespace headrace::kit::zoo
