// Well-known networks with seeded random weights: the shapes and operators of the published models, no download.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::kit {

// Designated initializers name what differs from the published model, which ignores what it does not have.
struct ZooOptions {
  int64_t resolution = 0;  // height and width of the picture; 0: the model's own
  int64_t batch = 1;       // 0: symbolic, named "N"
  int64_t classes = 0;     // 0: the model's own
  uint64_t seed = 1;
  // Sizes of a transformer; 0: the model's own.
  int64_t sequence = 0;    // tokens of a text
  int64_t vocabulary = 0;  // rows of the table of words
  int64_t layers = 0;
  int64_t heads = 0;  // each is 64 wide, and a layer as wide as all of them
};

struct ZooModel {
  std::string_view name;            // "resnet50"
  int64_t resolution = 0;           // the published one; 0: the model takes vectors or texts, not pictures
  int64_t smallest_resolution = 0;  // below it a feature map would vanish
  int64_t classes = 0;              // the published one, a detector's with the background; 0: a model of texts
  bool is_detector = false;
  int64_t sequence = 0;    // the usual one; 0: the model does not take texts
  int64_t vocabulary = 0;  // the published one
  int64_t layers = 0;      // layers of a transformer; 0: another network
  int64_t heads = 0;       // heads of a layer
};

// Returns the models: mlp (784-256-128-10), vgg16, alexnet, resnet18, resnet50, densenet121, squeezenet1_1,
// inception_v3, mobilenet_v2, shufflenet_v2 (x1.0), the detectors ssd_resnet50, ssd_vgg16, ssd_mobilenet (SSDLite over
// MobileNetV2), and the transformers bert_base, vit_base16 and gpt2.
const std::vector<ZooModel>& zoo_models();

// Returns the options of the model's small form for tests: the smallest resolution that is a multiple of 32; of a
// transformer 2 layers with 2 heads, 16 tokens and a vocabulary of 1000 (BERT is then as large as BERT-Tiny of Turc et
// al. 2019, except for its vocabulary).
ZooOptions small_zoo_options(const ZooModel& model);

// Returns the encoded ONNX model (opset 13, of transformers 17).
// - A network for pictures: one input "x" f32[N,3,H,W] (mlp: f32[N,784]), one output "y" f32[N,classes].
// - A detector has n boxes and three outputs: "boxes" f32[N,n,4] with the corners (y1, x1, y2, x2), "scores"
//   f32[N,classes-1,n] without the background, and "selected" i64[?,3], the result of NonMaxSuppression.
// - bert_base: inputs "input_ids", "token_type_ids" (0 or 1) and "attention_mask" (1, or 0 for tokens to ignore)
//   i64[N,S], outputs "last_hidden_state" f32[N,S,C] and "pooled" f32[N,C].
// - gpt2: input "input_ids" i64[N,S], output "logits" f32[N,S,vocabulary].
// Weights are He-scaled and batch norm is near the identity, so activations keep their size through the network for an
// input of unit variance; some scores of a detector pass its threshold. The same options give the same bytes on every
// machine. Throws UserError for an unknown name, for a resolution below the smallest, for one that vit_base16 cannot
// divide into patches of 16, and for a sequence that is longer than the model's table of positions.
std::string make_zoo_model(std::string_view name, const ZooOptions& options = {});

}  // namespace headrace::kit
