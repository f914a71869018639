// Hostile models: whatever a mutation makes of a valid file, importing and typing it is an error or a module, never a
// crash, a hang or a large allocation.
#include <chrono>

#include "base/mapped_file.h"
#include "frontend/onnx/tests/import_testing.h"
#include "kit/model_zoo.h"
#include "kit/mutate.h"
#include "kit/onnx_data.h"
#include "kit/options.h"
#include "relay/infer/infer_type.h"

namespace headrace::onnx {
namespace {

using namespace testing;

std::string encode(GraphWriter graph, int64_t opset) {
  return kit::encode_model(std::move(graph).finish(), {{"", opset}});
}

// Nodes whose shapes, axes and scales are initialisers, which the ONNX data passes as inputs.
void add_nodes(std::vector<std::string>& bytes) {
  const NDArray x = f32({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), small = f32({2}, {1, 2});
  const Operand scales = fixed(f32({4}, {1, 1, 1.5, 2})), none;
  const auto add = [&](std::string_view op, int64_t opset, const std::vector<Operand>& operands,
                       const Attributes& attributes = {}, size_t outputs = 1) {
    bytes.push_back(encode(node_graph(op, operands, attributes, outputs), opset));
  };
  add("Resize", 13, {x, none, scales}, {AttributeSpec("mode", "linear")});
  add("Resize", 13, {x, fixed(f32({8}, {0, 0, 0, 0, 1, 1, 0.5, 1})), scales},
      {AttributeSpec("mode", "cubic"), AttributeSpec("coordinate_transformation_mode", "tf_crop_and_resize")});
  add("Upsample", 7, {x}, {AttributeSpec("scales", std::vector<float>{1, 1, 2, 2})});
  add("Reshape", 14, {x, fixed(i64({3}, {0, -1, 2}))});
  add("Slice", 13, {x, fixed(i64({1}, {0})), fixed(i64({1}, {2})), fixed(i64({1}, {3})), fixed(i64({1}, {-1}))});
  add("Slice", 9, {x}, {AttributeSpec("starts", Ints{0, 1}), AttributeSpec("ends", Ints{2, 2})});
  add("Pad", 13, {x, fixed(i64({8}, {0, 0, 1, 1, 0, 0, 1, 1})), fixed(f32({}, {1}))});
  add("Pad", 10, {x}, {AttributeSpec("pads", Ints{0, 0, 1, 0, 0, 0, 0, 1}), AttributeSpec("mode", "edge")});
  add("OneHot", 11, {i64({2}, {0, 1}), fixed(i64({}, {3})), small});
  add("Range", 11, {fixed(i64({}, {0})), fixed(i64({}, {9})), fixed(i64({}, {2}))});
  add("Split", 13, {x, fixed(i64({2}, {1, 1}))}, {AttributeSpec("axis", 1)}, 2);
  add("Split", 11, {x}, {AttributeSpec("axis", 2), AttributeSpec("split", Ints{1, 1})}, 2);
  add("Tile", 13, {x, fixed(i64({4}, {1, 2, 1, 2}))});
  add("Expand", 13, {x, fixed(i64({5}, {2, 1, 1, 1, 2}))});
  add("Unsqueeze", 13, {x, fixed(i64({2}, {0, -1}))});
  add("ConstantOfShape", 9, {fixed(i64({2}, {2, 3}))});
  add("Gather", 13, {x, fixed(i64({2}, {1, -1}))}, {AttributeSpec("axis", 2)});
  add("Trilu", 14, {x, fixed(i64({}, {1}))});
  add("Compress", 11, {x, fixed(boolean({2}, {0, 1}))}, {AttributeSpec("axis", 1)});
  add("MaxPool", 12, {fixed(x)}, {AttributeSpec("kernel_shape", Ints{2, 2}), AttributeSpec("ceil_mode", 1)});
  add("Conv", 11, {f32({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), fixed(f32({1, 1, 2, 1, 1}, {1, 2}))},
      {AttributeSpec("pads", Ints{1, 0, 0, 1, 0, 0}), AttributeSpec("strides", Ints{2, 1, 1})});
  add("ConvTranspose", 11, {x, fixed(f32({2, 1, 2, 2}, std::vector<double>(8, 1)))},
      {AttributeSpec("output_shape", Ints{3, 3}), AttributeSpec("strides", Ints{2, 2})});
  add("DepthToSpace", 13, {f32({1, 4, 1, 1}, {1, 2, 3, 4})}, {AttributeSpec("blocksize", 2)});
  add("HannWindow", 17, {fixed(i64({}, {5}))});
  add("LRN", 13, {x}, {AttributeSpec("size", 3)});
  add("Add", 6, {x, f32({2}, {1, 2})}, {AttributeSpec("broadcast", 1), AttributeSpec("axis", 1)});
}

// Functions that call each other with attributes, and operators of onnxruntime.
void add_optimised_models(std::vector<std::string>& bytes) {
  GraphWriter leaf, middle, graph;
  leaf.node_with_outputs("LeakyRelu", {"a"}, {"b"}, {AttributeSpec("alpha", 0.5F)});
  middle.node_with_outputs("Leaf", {"a"}, {"t"}, {}, "local");
  middle.node_with_outputs("Leaf", {"t"}, {"b"}, {}, "local");
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.node_with_outputs("Middle", {"x"}, {"y"}, {AttributeSpec("by", 3)}, "local");
  graph.output("y", ElementType::kFloat);
  std::string function = encode_function("local", "Middle", {"a", "c"}, {"b"}, std::move(middle));
  protozero::pbf_writer(function).add_string(6, "by");
  bytes.push_back(encode_with_functions(
      std::move(graph), {function, encode_function("local", "Leaf", {"a"}, {"b"}, std::move(leaf), 15)}));
  const NDArray rows = f32({1, 2, 2}, {1, 2, 3, 4}), two = f32({2}, {1, 2});
  const auto add = [&](std::string_view op, const std::vector<Operand>& operands, const Attributes& attributes = {}) {
    bytes.push_back(encode(node_graph(op, operands, attributes, 1, "com.microsoft"), 17));
  };
  add("FusedGemm", {f32({1, 2}, {1, 2}), f32({2, 2}, {1, 2, 3, 4})},
      {AttributeSpec("activation", "LeakyRelu"), AttributeSpec("activation_alpha", 0.5F)});
  add("SkipLayerNormalization", {rows, rows, two, two});
  add("Attention", {rows, f32({2, 6}, std::vector<double>(12, 1)), Operand(), i64({1}, {2})},
      {AttributeSpec("num_heads", 2), AttributeSpec("qkv_hidden_sizes", Ints{2, 2, 2})});
  add("RotaryEmbedding", {rows, fixed(i64({1}, {1})), f32({4, 1}, {1, 1, 1, 1}), f32({4, 1}, {1, 1, 1, 1})});
}

// Models that import.
std::vector<std::string> seeds() {
  std::vector<std::string> bytes = {kit::make_zoo_model("squeezenet1_1", {.resolution = 32, .classes = 2})};
  for (int copies = 0; copies < 4; ++copies) add_nodes(bytes), add_optimised_models(bytes);
  const std::vector<kit::OnnxCase> cases = kit::find_onnx_cases();
  for (size_t i = 0; i < cases.size(); i += 7) {
    const auto file = MappedFile::open(cases[i].model.string(), "model");
    std::string one(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    if (kit::user_error_of([&] { import_bytes(one); }).empty()) bytes.push_back(std::move(one));
  }
  return bytes;
}

TEST(ImportMutation, IsAnErrorOrAModule) {
  const std::vector<std::string> valid = seeds();
  int errors = 0;
  const int runs = kit::case_count(2000, 50000);
  for (int run = 0; run < runs; ++run) {
    kit::Random random(kit::options().seed.value_or(static_cast<uint64_t>(run)));
    const std::string bytes = kit::mutate(valid[random.index(valid.size())], random);
    SCOPED_TRACE(::testing::Message() << "--seed=" << run);
    const auto begin = std::chrono::steady_clock::now();
    const auto import_it = [&] { relay::infer_type(import_bytes(bytes).module); };
    errors += kit::user_error_of(import_it).empty() ? 0 : 1;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
  // Both outcomes must occur, or the mutations are too timid or too wild to test anything.
  EXPECT_GT(errors, runs / 10);
  EXPECT_LT(errors, runs * 97 / 100);
}

}  // namespace
}  // namespace headrace::onnx
