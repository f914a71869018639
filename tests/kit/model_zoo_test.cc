#include "kit/model_zoo.h"

#include <gtest/gtest.h>

#include <map>

#include "frontend/onnx/read_model.h"
#include "frontend/onnx/tensor.h"
#include "kit/errors.h"

namespace headrace::kit {
namespace {

onnx::Model read(const std::string& bytes) { return onnx::read_model(std::as_bytes(std::span(bytes)), "zoo"); }

int64_t count_parameters(const onnx::Model& model) {
  onnx::TensorSource source(model);
  int64_t count = 0;
  for (const onnx::TensorProto& tensor : model.graph.initializers) {
    if (tensor.name.starts_with("w")) count += source.load(tensor).element_count();
  }
  return count;
}

// Trainable parameters as published for torchvision's models (1000 classes); ours add two running statistics per
// batch norm channel, and the mlp is counted by hand.
TEST(ModelZoo, ParameterCountsArePublishedOnes) {
  const std::map<std::string_view, int64_t> published = {{"mlp", 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10},
                                                         {"resnet18", 11689512},
                                                         {"resnet50", 25557032},
                                                         {"squeezenet1_1", 1235496},
                                                         {"inception_v3", 23834568},
                                                         {"mobilenet_v2", 3504872},
                                                         {"ssd_vgg16", 35641826}};
  for (const auto& [name, expected] : published) {
    SCOPED_TRACE(name);
    const std::string bytes = make_zoo_model(name);
    onnx::Model model = read(bytes);
    int64_t count = count_parameters(model);
    for (const onnx::Node& node : model.graph.nodes) {
      if (node.op_type != "BatchNormalization") continue;
      for (const onnx::TensorProto& tensor : model.graph.initializers) {
        if (tensor.name == node.inputs.at(3)) count -= 2 * tensor.dims.at(0);
      }
    }
    if (name == "ssd_vgg16") count += 512;  // the scale behind the L2 norm, a constant here
    EXPECT_EQ(count, expected);
  }
}

TEST(ModelZoo, Vgg16HasItsLayers) {
  const std::string bytes = make_zoo_model("vgg16", {.resolution = 32});
  onnx::Model model = read(bytes);
  std::map<std::string_view, int> ops;
  for (const onnx::Node& node : model.graph.nodes) ++ops[node.op_type];
  EXPECT_EQ(ops["Conv"], 13);
  EXPECT_EQ(ops["Gemm"], 3);
  EXPECT_EQ(ops["MaxPool"], 5);
}

// The numbers of boxes that are published: of the paper's SSD300, and of TensorFlow's SSD over MobileNetV2.
TEST(ModelZoo, DetectorsHaveTheirBoxes) {
  const std::map<std::string_view, std::pair<int64_t, int64_t>> published = {
      {"ssd_resnet50", {8732, 81}}, {"ssd_vgg16", {8732, 91}}, {"ssd_mobilenet", {1917, 91}}};
  for (const auto& [name, counts] : published) {
    SCOPED_TRACE(name);
    const std::string bytes = make_zoo_model(name);
    const onnx::Model model = read(bytes);
    ASSERT_EQ(model.graph.outputs.size(), 3);
    EXPECT_EQ(model.graph.outputs.at(0).type.shape->at(1).value, counts.first);
    EXPECT_EQ(model.graph.outputs.at(1).type.shape->at(1).value, counts.second - 1);
    EXPECT_EQ(model.graph.outputs.at(1).type.shape->at(2).value, counts.first);
    EXPECT_EQ(model.graph.nodes.at(model.graph.nodes.size() - 4).op_type, "NonMaxSuppression");
  }
}

TEST(ModelZoo, SameOptionsGiveSameBytes) {
  ZooOptions small{.resolution = 32};
  EXPECT_EQ(make_zoo_model("mobilenet_v2", small), make_zoo_model("mobilenet_v2", small));
  ZooOptions other{.resolution = 32, .seed = 2};
  EXPECT_NE(make_zoo_model("mobilenet_v2", small), make_zoo_model("mobilenet_v2", other));
}

TEST(ModelZoo, BatchAndClassesShowInTheTypes) {
  const std::string bytes = make_zoo_model("squeezenet1_1", {.resolution = 64, .batch = 0, .classes = 7});
  onnx::Model model = read(bytes);
  EXPECT_EQ(model.graph.inputs.at(0).type.shape->at(0).symbol, "N");
  EXPECT_EQ(model.graph.inputs.at(0).type.shape->at(2).value, 64);
  EXPECT_EQ(model.graph.outputs.at(0).type.shape->at(1).value, 7);
}

TEST(ModelZoo, Errors) {
  EXPECT_EQ(user_error_of([] { make_zoo_model("alexnet"); }),
            "there is no model 'alexnet' in the zoo; there are mlp, vgg16, resnet18, resnet50, squeezenet1_1, "
            "inception_v3, mobilenet_v2, ssd_resnet50, ssd_vgg16, ssd_mobilenet");
  EXPECT_EQ(user_error_of([] { make_zoo_model("ssd_vgg16", {.resolution = 8}); }),
            "ssd_vgg16 needs a resolution of at least 12, not 8");
  EXPECT_EQ(user_error_of([] { make_zoo_model("inception_v3", {.resolution = 32}); }),
            "inception_v3 needs a resolution of at least 75, not 32");
}

}  // namespace
}  // namespace headrace::kit
