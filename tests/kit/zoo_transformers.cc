// The operators and their order are those that torch's exporter writes for BERT and GPT-2 of the package transformers
// and for ViT of torchvision with static shapes, except that 0 and -1 stand for the batch in Reshape.
//
// With scores near zero attention would be nearly uniform, and its result a mean of many values, which is small.
// Queries and keys therefore have gain 2: scores have deviation 2, and a few tokens take most of the weight.
#include "kit/zoo_transformers.h"

#include <limits>

#include "base/error.h"

namespace headrace::kit::zoo {

namespace {

constexpr int64_t kHeadWidth = 64;
constexpr float kScoreGain = 2;
// Gain of the last layer of a branch whose sum is not normalized; with a larger one the sums would grow with the
// layers.
constexpr float kDampedGain = 0.2F;
constexpr int64_t kBertPositions = 512;
constexpr int64_t kGptPositions = 1024;
constexpr int64_t kPatch = 16;

std::string reshape(Net& net, const std::string& x, const std::vector<int64_t>& dims) {
  return net.node("Reshape", {x, net.constant<int64_t>({std::ssize(dims)}, dims)});
}

std::string transpose(Net& net, const std::string& x, const std::vector<int64_t>& perm) {
  return net.node("Transpose", {x}, {{"perm", perm}});
}

// Applies a binary operator to `x` and a number.
std::string with_number(Net& net, const char* op, const std::string& x, float number) {
  return net.node(op, {x, net.constant<float>({}, {number})});
}

// Computes x/2 (1 + erf(x / sqrt(2))).
Map gelu_erf(Net& net, const Map& x) {
  const std::string erf = net.node("Erf", {with_number(net, "Div", x.name, 1.41421354F)});
  const std::string product = net.node("Mul", {x.name, with_number(net, "Add", erf, 1)});
  return {with_number(net, "Mul", product, 0.5F), x.channels};
}

// Computes x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Map gelu_tanh(Net& net, const Map& x) {
  const std::string half_x = with_number(net, "Mul", x.name, 0.5F);
  const std::string cube = with_number(net, "Mul", with_number(net, "Pow", x.name, 3), 0.044715F);
  const std::string inner = with_number(net, "Mul", net.node("Add", {x.name, cube}), 0.797884583F);
  const std::string outer = with_number(net, "Add", net.node("Tanh", {inner}), 1);
  return {net.node("Mul", {half_x, outer}), x.channels};
}

// Splits the last axis into heads: f32[N,S,C] -> f32[N,heads,S,64]; turned: f32[N,heads,64,S].
std::string split_heads(Net& net, const std::string& x, const Sizes& sizes, bool is_turned = false) {
  const std::string apart = reshape(net, x, {0, sizes.sequence, sizes.heads, kHeadWidth});
  return transpose(net, apart, is_turned ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
}

// Joins the heads again: f32[N,heads,S,64] -> f32[N,S,C].
Map merge_heads(Net& net, const std::string& x, const Sizes& sizes) {
  const int64_t width = sizes.heads * kHeadWidth;
  return {reshape(net, transpose(net, x, {0, 2, 1, 3}), {0, sizes.sequence, width}), width};
}

std::string softmax_of_last(Net& net, const std::string& x) { return net.node("Softmax", {x}, {{"axis", -1}}); }

// Adds a table with one row a position and returns its first S rows, f32[1,S,C].
std::string positions(Net& net, int64_t rows, const Sizes& sizes, int64_t width, float deviation) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < sizes.sequence; ++i) ids.push_back(i);
  return net.node("Gather", {net.weight({rows, width}, 0, deviation), net.constant<int64_t>({1, sizes.sequence}, ids)});
}

// Takes the first token: f32[N,S,C] -> f32[N,C].
Map first_token(Net& net, const Map& x) {
  return {net.node("Gather", {x.name, net.constant<int64_t>({}, {0})}, {{"axis", 1}}), x.channels};
}

void check_sequence(std::string_view name, int64_t sequence, int64_t rows) {
  if (sequence > rows) {
    throw_user_error("{} takes a sequence of at most {} tokens, not {}", name, rows, sequence);
  }
}

// Returns f32[N,1,1,S] to add to the scores: 0 where the mask i64[N,S] is 1, the lowest float where it is 0.
std::string additive_mask(Net& net, const std::string& mask) {
  std::string x = net.node("Unsqueeze", {mask, net.constant<int64_t>({1}, {1})});
  x = net.node("Unsqueeze", {x, net.constant<int64_t>({1}, {2})});
  x = net.node("Cast", {x}, {{"to", static_cast<int64_t>(onnx::ElementType::kFloat)}});
  x = net.node("Sub", {net.constant<float>({}, {1}), x});
  return with_number(net, "Mul", x, std::numeric_limits<float>::lowest());
}

Map bert_embeddings(Net& net, const Sizes& sizes) {
  const std::vector<DimSpec> dims = {sizes.batch, sizes.sequence};
  const std::string ids = net.input("input_ids", dims), types = net.input("token_type_ids", dims);
  const int64_t width = sizes.heads * kHeadWidth;
  const std::string words = net.node("Gather", {net.weight({sizes.vocabulary, width}, 0, 0.6F), ids});
  const std::string sum = net.node("Add", {words, net.node("Gather", {net.weight({2, width}, 0, 0.6F), types})});
  return {net.node("Add", {sum, positions(net, kBertPositions, sizes, width, 0.6F)}), width};
}

Map bert_attention(Net& net, const Map& x, const std::string& mask, const Sizes& sizes) {
  const std::string query = split_heads(net, net.linear(x, x.channels, kScoreGain).name, sizes);
  const std::string key = split_heads(net, net.linear(x, x.channels, kScoreGain).name, sizes, true);
  const std::string value = split_heads(net, net.linear(x, x.channels, 1).name, sizes);
  const std::string scores = with_number(net, "Div", net.node("MatMul", {query, key}), 8);
  const std::string weights = softmax_of_last(net, net.node("Add", {scores, mask}));
  return net.linear(merge_heads(net, net.node("MatMul", {weights, value}), sizes), x.channels, 1);
}

void build_bert(Net& net, const Sizes& sizes) {
  constexpr float kEpsilon = 1e-12F;
  Map x = net.layer_norm(bert_embeddings(net, sizes), kEpsilon);
  const std::string mask = additive_mask(net, net.input("attention_mask", {sizes.batch, sizes.sequence}));
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    x = net.layer_norm(net.add(bert_attention(net, x, mask, sizes), x), kEpsilon);
    const Map wide = gelu_erf(net, net.linear(x, 4 * x.channels, 1));
    x = net.layer_norm(net.add(net.linear(wide, x.channels, 2), x), kEpsilon);
  }
  const std::string pooled = net.node("Tanh", {net.dense(first_token(net, x), x.channels, 1).name});
  net.output("last_hidden_state", x.name, onnx::ElementType::kFloat, {sizes.batch, sizes.sequence, x.channels});
  net.output("pooled", pooled, onnx::ElementType::kFloat, {sizes.batch, x.channels});
}

// Applies a dense layer to f32[N,S,C] as Conv1D of the package transformers does, whose weight is not transposed.
Map conv1d(Net& net, const Map& x, int64_t features, float gain, const Sizes& sizes) {
  const std::string rows = reshape(net, x.name, {-1, x.channels});
  const std::vector<std::string> inputs = {
      rows, net.weight({x.channels, features}, 0, Net::deviation(gain, x.channels)), net.weight({features}, 0, 0.05F)};
  const std::string product = net.node("Gemm", inputs, {{"alpha", 1.0F}, {"beta", 1.0F}});
  return {reshape(net, product, {-1, sizes.sequence, features}), features};
}

// Returns bool[1,1,S,S], true where the token of a row may see that of a column: itself and those before it.
std::string causal_mask(Net& net, int64_t sequence) {
  std::vector<uint8_t> mask;
  for (int64_t i = 0; i < sequence * sequence; ++i) mask.push_back(i % sequence <= i / sequence ? 1 : 0);
  return net.bool_constant({1, 1, sequence, sequence}, mask);
}

Map gpt_attention(Net& net, const Map& x, const std::string& mask, const Sizes& sizes) {
  const Map all = conv1d(net, x, 3 * x.channels, kScoreGain, sizes);
  const std::vector<std::string> parts = net.split(all.name, 2, 3, x.channels);
  const std::string query = split_heads(net, parts[0], sizes), key = split_heads(net, parts[1], sizes, true);
  const std::string scores = with_number(net, "Div", net.node("MatMul", {query, key}), 8);
  const std::string lowest = net.constant<float>({}, {std::numeric_limits<float>::lowest()});
  const std::string weights = softmax_of_last(net, net.node("Where", {mask, scores, lowest}));
  const std::string mixed = net.node("MatMul", {weights, split_heads(net, parts[2], sizes)});
  return conv1d(net, merge_heads(net, mixed, sizes), x.channels, kDampedGain, sizes);
}

void build_gpt2(Net& net, const Sizes& sizes) {
  constexpr float kEpsilon = 1e-5F;
  const std::string ids = net.input("input_ids", {sizes.batch, sizes.sequence});
  const int64_t width = sizes.heads * kHeadWidth;
  // The head has the same weights, which give its scores deviation 4.
  const float deviation = Net::deviation(16, width);
  const std::string words = net.weight({sizes.vocabulary, width}, 0, deviation);
  const std::string places = positions(net, kGptPositions, sizes, width, deviation);
  Map x = {net.node("Add", {net.node("Gather", {words, ids}), places}), width};
  const std::string mask = causal_mask(net, sizes.sequence);
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    x = net.add(gpt_attention(net, net.layer_norm(x, kEpsilon), mask, sizes), x);
    const Map wide = gelu_tanh(net, conv1d(net, net.layer_norm(x, kEpsilon), 4 * width, 1, sizes));
    x = net.add(x, conv1d(net, wide, width, kDampedGain, sizes));
  }
  const std::string logits = net.node("MatMul", {net.layer_norm(x, kEpsilon).name, transpose(net, words, {1, 0})});
  net.output("logits", logits, onnx::ElementType::kFloat, {sizes.batch, sizes.sequence, sizes.vocabulary});
}

// Adds the class token and returns it once for each picture of the batch, f32[N,1,C].
std::string class_tokens(Net& net, const Map& picture, int64_t width, const DimSpec& batch) {
  const std::string token = net.weight({1, 1, width}, 0, 1);
  if (const auto* count = std::get_if<int64_t>(&batch)) {
    return net.node("Expand", {token, net.constant<int64_t>({3}, {*count, 1, width})});
  }
  const std::string count = net.node("Gather", {net.node("Shape", {picture.name}), net.constant<int64_t>({1}, {0})});
  const std::string shape = net.node("Concat", {count, net.constant<int64_t>({2}, {1, width})}, {{"axis", 0}});
  return net.node("Expand", {token, shape});
}

// Makes a token for the class and one for each patch, with their positions: f32[N,3,H,W] -> f32[N,S,C].
Map vit_tokens(Net& net, const Sizes& sizes) {
  const int64_t width = sizes.heads * kHeadWidth;
  const Map x = picture(net, sizes);
  ConvSpec spec = square(width, kPatch, kPatch, 0);
  spec.gain = 1;
  const std::string patches = reshape(net, net.conv(x, spec, true).name, {0, width, sizes.sequence - 1});
  const std::string tokens =
      net.node("Concat", {class_tokens(net, x, width, sizes.batch), transpose(net, patches, {0, 2, 1})}, {{"axis", 1}});
  return {net.node("Add", {tokens, net.weight({1, sizes.sequence, width}, 0, 0.3F)}), width};
}

// Splits the joint f32[S,N,3C] of queries, keys and values as nn.MultiheadAttention does: three f32[N,heads,S,64].
std::vector<std::string> split_joint(Net& net, const std::string& joint, int64_t width, const Sizes& sizes) {
  std::string x = reshape(net, joint, {0, 0, 3, width});
  x = net.node("Unsqueeze", {x, net.constant<int64_t>({1}, {0})});
  x = transpose(net, x, {3, 1, 2, 0, 4});
  x = net.node("Squeeze", {x, net.constant<int64_t>({1}, {3})});
  std::vector<std::string> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const std::string part = net.node("Gather", {x, net.constant<int64_t>({}, {i})}, {{"axis", 0}});
    const std::string by_head = transpose(net, reshape(net, part, {sizes.sequence, -1, kHeadWidth}), {1, 0, 2});
    parts.push_back(reshape(net, by_head, {-1, sizes.heads, sizes.sequence, kHeadWidth}));
  }
  return parts;
}

Map vit_attention(Net& net, const Map& x, const Sizes& sizes) {
  const Map turned = {transpose(net, x.name, {1, 0, 2}), x.channels};
  const Map joint = net.linear(turned, 3 * x.channels, kScoreGain);
  const std::vector<std::string> parts = split_joint(net, joint.name, x.channels, sizes);
  // Queries and keys take half of the scale each: the fourth root of 1/64.
  const std::string query = with_number(net, "Mul", parts[0], 0.353553385F);
  const std::string key = with_number(net, "Mul", transpose(net, parts[1], {0, 1, 3, 2}), 0.353553385F);
  const std::string weights = softmax_of_last(net, net.node("MatMul", {query, key}));
  const std::string mixed = transpose(net, net.node("MatMul", {weights, parts[2]}), {2, 0, 1, 3});
  const Map rows = net.dense({reshape(net, mixed, {-1, x.channels}), x.channels}, x.channels, kDampedGain);
  return {transpose(net, reshape(net, rows.name, {sizes.sequence, -1, x.channels}), {1, 0, 2}), x.channels};
}

void build_vit(Net& net, std::string_view name, Sizes sizes) {
  constexpr float kEpsilon = 1e-6F;
  if (sizes.resolution % kPatch != 0) {
    throw_user_error("{} needs a resolution that is a multiple of {}, not {}", name, kPatch, sizes.resolution);
  }
  sizes.sequence = (sizes.resolution / kPatch) * (sizes.resolution / kPatch) + 1;
  Map x = vit_tokens(net, sizes);
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    x = net.add(vit_attention(net, net.layer_norm(x, kEpsilon), sizes), x);
    const Map wide = gelu_erf(net, net.linear(net.layer_norm(x, kEpsilon), 4 * x.channels, 1));
    x = net.add(x, net.linear(wide, x.channels, kDampedGain));
  }
  const Map y = net.dense(first_token(net, net.layer_norm(x, kEpsilon)), sizes.classes, 1);
  net.output("y", y.name, onnx::ElementType::kFloat, {sizes.batch, y.channels});
}

}  // namespace

void build_transformer(Net& net, std::string_view name, const Sizes& sizes) {
  if (name == "bert_base") {
    check_sequence(name, sizes.sequence, kBertPositions);
    return build_bert(net, sizes);
  }
  if (name == "gpt2") {
    check_sequence(name, sizes.sequence, kGptPositions);
    return build_gpt2(net, sizes);
  }
  HEADRACE_CHECK(name == "vit_base16", "no builder for {}", name);
  build_vit(net, name, sizes);
}

}  // namespace headrace::kit::zoo
