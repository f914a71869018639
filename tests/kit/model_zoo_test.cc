#include "kit/model_zoo.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "frontend/onnx/file/read_model.h"
#include "frontend/onnx/file/tensor.h"
#include "kit/errors.h"
#include "kit/options.h"

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

// Counts all but the running statistics; batch norm has two a channel.
int64_t count_trainable_parameters(const onnx::Model& model) {
  int64_t count = count_parameters(model);
  for (const onnx::Node& node : model.graph.nodes) {
    if (node.op_type != "BatchNormalization") continue;
    for (const onnx::TensorProto& tensor : model.graph.initializers) {
      if (tensor.name == node.inputs.at(3)) count -= 2 * tensor.dims.at(0);
    }
  }
  return count;
}

// Trainable parameters as published: `num_params` in the metadata of torchvision's weights (1000 classes), and the
// counts of BertModel from bert-base-uncased (the paper says 110M) and of GPT2LMHeadModel from gpt2 in the package
// transformers. The mlp is counted by hand.
TEST(ModelZoo, ParameterCountsArePublishedOnes) {
  const std::map<std::string_view, int64_t> published = {{"mlp", 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10},
                                                         {"alexnet", 61100840},
                                                         {"resnet18", 11689512},
                                                         {"resnet50", 25557032},
                                                         {"densenet121", 7978856},
                                                         {"squeezenet1_1", 1235496},
                                                         {"inception_v3", 23834568},
                                                         {"mobilenet_v2", 3504872},
                                                         {"shufflenet_v2", 2278604},
                                                         {"ssd_vgg16", 35641826},
                                                         {"bert_base", 109482240},
                                                         {"vit_base16", 86567656},
                                                         {"gpt2", 124439808}};
  for (const auto& [name, expected] : published) {
    if (kit::options().size == kit::TestSize::kFew && expected > 30'000'000) continue;  // a sanitizer learns nothing
    SCOPED_TRACE(name);
    const std::string bytes = make_zoo_model(name);
    int64_t count = count_trainable_parameters(read(bytes));
    if (name == "ssd_vgg16") count += 512;  // the scale behind the L2 norm, a constant here
    EXPECT_EQ(count, expected);
  }
}

std::map<std::string_view, int> count_ops(const onnx::Model& model) {
  std::map<std::string_view, int> ops;
  for (const onnx::Node& node : model.graph.nodes) ++ops[node.op_type];
  return ops;
}

TEST(ModelZoo, Vgg16HasItsLayers) {
  const std::string bytes = make_zoo_model("vgg16", {.resolution = 32});
  const onnx::Model model = read(bytes);
  std::map<std::string_view, int> ops = count_ops(model);
  EXPECT_EQ(ops["Conv"], 13);
  EXPECT_EQ(ops["Gemm"], 3);
  EXPECT_EQ(ops["MaxPool"], 5);
}

const ZooModel& find_model(std::string_view name) {
  for (const ZooModel& model : zoo_models()) {
    if (model.name == name) return model;
  }
  throw std::out_of_range("no such model");
}

// Counts the operators of 12 layers. A layer of BERT has 6 dense layers and 2 products of attention. Those of ViT's
// layers behind the attention and all of GPT-2's are Gemm; GPT-2 has its head besides.
TEST(ModelZoo, TransformersHaveTheirLayers) {
  using Ops = std::map<std::string_view, int>;
  const std::map<std::string_view, Ops> published = {
      {"bert_base", {{"MatMul", 96}, {"Gemm", 1}, {"Erf", 12}, {"Tanh", 1}, {"Where", 0}}},
      {"vit_base16", {{"MatMul", 60}, {"Gemm", 13}, {"Erf", 12}, {"Tanh", 0}, {"Where", 0}}},
      {"gpt2", {{"MatMul", 25}, {"Gemm", 48}, {"Erf", 0}, {"Tanh", 12}, {"Where", 12}}}};
  for (const auto& [name, expected] : published) {
    SCOPED_TRACE(name);
    ZooOptions narrow = small_zoo_options(find_model(name));
    narrow.layers = 12;
    const std::string bytes = make_zoo_model(name, narrow);
    const onnx::Model model = read(bytes);
    Ops ops = count_ops(model);
    for (const auto& [op, count] : expected) EXPECT_EQ(ops[op], count) << op;
    EXPECT_EQ(ops["LayerNormalization"], 25);
    EXPECT_EQ(ops["Softmax"], 12);
  }
}

// The head of GPT-2 multiplies by the transpose of the table that input_ids index.
TEST(ModelZoo, TheHeadOfGpt2IsTiedToItsWords) {
  const std::string bytes = make_zoo_model("gpt2", small_zoo_options(find_model("gpt2")));
  const onnx::Model model = read(bytes);
  std::string_view words, turned;
  for (const onnx::Node& node : model.graph.nodes) {
    if (node.op_type == "Gather" && node.inputs.at(1) == "input_ids") words = node.inputs.at(0);
    if (node.op_type == "Transpose" && !words.empty() && node.inputs.at(0) == words) turned = node.outputs.at(0);
  }
  ASSERT_FALSE(turned.empty());
  const onnx::Node& head = model.graph.nodes.at(model.graph.nodes.size() - 2);
  EXPECT_EQ(head.op_type, "MatMul");
  EXPECT_EQ(head.inputs.at(1), turned);
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
  const ZooOptions text = small_zoo_options({.name = "gpt2", .sequence = 64, .layers = 12});
  EXPECT_EQ(make_zoo_model("gpt2", text), make_zoo_model("gpt2", text));
}

TEST(ModelZoo, BatchAndClassesShowInTheTypes) {
  const std::string bytes = make_zoo_model("squeezenet1_1", {.resolution = 64, .batch = 0, .classes = 7});
  onnx::Model model = read(bytes);
  EXPECT_EQ(model.graph.inputs.at(0).type.shape->at(0).symbol, "N");
  EXPECT_EQ(model.graph.inputs.at(0).type.shape->at(2).value, 64);
  EXPECT_EQ(model.graph.outputs.at(0).type.shape->at(1).value, 7);
}

TEST(ModelZoo, SequenceAndVocabularyShowInTheTypes) {
  const std::string bytes =
      make_zoo_model("gpt2", {.batch = 0, .sequence = 5, .vocabulary = 9, .layers = 1, .heads = 1});
  const onnx::Model model = read(bytes);
  ASSERT_EQ(model.graph.inputs.size(), 1);
  EXPECT_EQ(model.graph.inputs.at(0).type.shape->at(0).symbol, "N");
  EXPECT_EQ(model.graph.inputs.at(0).type.shape->at(1).value, 5);
  EXPECT_EQ(model.graph.outputs.at(0).type.shape->at(1).value, 5);
  EXPECT_EQ(model.graph.outputs.at(0).type.shape->at(2).value, 9);
}

TEST(ModelZoo, SmallForms) {
  EXPECT_EQ(small_zoo_options(find_model("mlp")).resolution, 0);
  EXPECT_EQ(small_zoo_options(find_model("resnet50")).resolution, 32);
  EXPECT_EQ(small_zoo_options(find_model("alexnet")).resolution, 64);
  EXPECT_EQ(small_zoo_options(find_model("inception_v3")).resolution, 96);
  const ZooOptions text = small_zoo_options(find_model("bert_base"));
  EXPECT_EQ(text.resolution, 0);
  EXPECT_EQ(text.sequence, 16);
  EXPECT_EQ(text.vocabulary, 1000);
  EXPECT_EQ(text.layers, 2);
  EXPECT_EQ(text.heads, 2);
}

TEST(ModelZoo, Errors) {
  EXPECT_EQ(user_error_of([] { make_zoo_model("lenet"); }),
            "there is no model 'lenet' in the zoo; there are mlp, vgg16, alexnet, resnet18, resnet50, densenet121, "
            "squeezenet1_1, inception_v3, mobilenet_v2, shufflenet_v2, ssd_resnet50, ssd_vgg16, ssd_mobilenet, "
            "bert_base, vit_base16, gpt2");
  EXPECT_EQ(user_error_of([] { make_zoo_model("bert_base", {.sequence = 513}); }),
            "bert_base takes a sequence of at most 512 tokens, not 513");
  EXPECT_EQ(user_error_of([] { make_zoo_model("gpt2", {.sequence = 1025}); }),
            "gpt2 takes a sequence of at most 1024 tokens, not 1025");
  EXPECT_EQ(user_error_of([] { make_zoo_model("vit_base16", {.resolution = 40}); }),
            "vit_base16 needs a resolution that is a multiple of 16, not 40");
  EXPECT_EQ(user_error_of([] { make_zoo_model("alexnet", {.resolution = 62}); }),
            "alexnet needs a resolution of at least 63, not 62");
  EXPECT_EQ(user_error_of([] { make_zoo_model("densenet121", {.resolution = 28}); }),
            "densenet121 needs a resolution of at least 29, not 28");
  EXPECT_EQ(user_error_of([] { make_zoo_model("ssd_vgg16", {.resolution = 8}); }),
            "ssd_vgg16 needs a resolution of at least 12, not 8");
  EXPECT_EQ(user_error_of([] { make_zoo_model("inception_v3", {.resolution = 32}); }),
            "inception_v3 needs a resolution of at least 75, not 32");
}

}  // namespace
}  // namespace headrace::kit
