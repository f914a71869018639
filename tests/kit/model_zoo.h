// Well-known networks with seeded random weights: the shapes and operators of the published models, no download.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::kit {

// Designated initializers name what differs from the published model.
struct ZooOptions {
  int64_t resolution = 0;  // height and width of the picture; 0: the model's own
  int64_t batch = 1;       // 0: symbolic, named "N"
  int64_t classes = 0;     // 0: the model's own
  uint64_t seed = 1;
};

struct ZooModel {
  std::string_view name;        // "resnet50"
  int64_t resolution;           // the published one; 0: the model takes vectors, not pictures
  int64_t smallest_resolution;  // below it a feature map would vanish
  int64_t classes;              // the published one, a detector's with the background
  bool is_detector = false;
};

// Returns the models: mlp (784-256-128-10), vgg16, resnet18, resnet50, squeezenet1_1, inception_v3, mobilenet_v2, and
// the detectors ssd_resnet50, ssd_vgg16, ssd_mobilenet (SSDLite over MobileNetV2).
const std::vector<ZooModel>& zoo_models();

// Returns the encoded ONNX model (opset 13): one input "x" f32[N,3,H,W] (mlp: f32[N,784]), one output "y"
// f32[N,classes]. A detector has n boxes and three outputs: "boxes" f32[N,n,4] with the corners (y1, x1, y2, x2),
// "scores" f32[N,classes-1,n] without the background, and "selected" i64[?,3], the result of NonMaxSuppression.
// Weights are He-scaled and batch norm is near the identity, so activations keep their size through the network for an
// input of unit variance; some scores of a detector pass its threshold. The same options give the same bytes on every
// machine. Throws UserError for an unknown name and for a resolution below the smallest.
std::string make_zoo_model(std::string_view name, const ZooOptions& options = {});

}  // namespace headrace::kit
