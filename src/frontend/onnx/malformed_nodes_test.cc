// Nodes with a fault, of each operator of the table. Operands: each in turn is given the empty name, and they are cut
// off one by one from the end; the outcome is a module or a UserError that names the node. Attributes: those that are
// booleans are given other numbers than 0 and 1, which is a UserError that names the node and the attribute.
#include <set>

#include "frontend/onnx/op_table.h"
#include "frontend/onnx/tests/import_testing.h"
#include "kit/files.h"
#include "kit/onnx_data.h"
#include "kit/options.h"

namespace headrace::onnx {
namespace {

using namespace testing;

// A model that imports, and the inputs that must be known for it.
struct Base {
  std::string name;
  std::string bytes;
  ImportOptions options;
};

// Small tensors decide what is built: axes, shapes, scales. The others stay inputs.
void bind_small_inputs(const Model& model, const kit::OnnxDataSet& set, ImportOptions& options) {
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const ValueInfo& info = model.graph.inputs.at(i);
    if (info.type.kind != ValueKind::kTensor || !element_size_bytes(info.type.element_type)) continue;
    const TensorData data = kit::read_onnx_value(set.inputs[i], info.type).tensors.at(0);
    const auto dtype = find_dtype(data.type);
    if (dtype && data.dims.size() <= 1)
      options.bound.emplace(info.name,
                            NDArray::from_bytes(Shape(data.dims.begin(), data.dims.end()), *dtype, data.bytes));
  }
}

std::vector<Base> bases_of_the_data() {
  std::vector<Base> bases;
  for (const kit::OnnxCase& one : kit::find_onnx_cases()) {
    if (one.suite != "node" || one.data_sets.empty()) continue;
    Base base{one.name, kit::read_file(one.model.string()), {}};
    if (!kit::user_error_of([&] { bind_small_inputs(read(base.bytes), one.data_sets[0], base.options); }).empty())
      continue;
    bases.push_back(std::move(base));
  }
  return bases;
}

void add(std::vector<Base>& bases, std::string_view op, int64_t opset, const std::vector<Operand>& operands,
         const Attributes& attributes = {}, size_t outputs = 1) {
  GraphWriter graph = node_graph(op, operands, attributes, outputs);
  bases.push_back({std::string(op), kit::encode_model(std::move(graph).finish(), {{"", opset}}), {}});
}

// The operators that the data has no case of, or only cases of several nodes.
void add_young_operators(std::vector<Base>& bases) {
  const NDArray x = f32({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), two = f32({2}, {1, 2}), bools = boolean({2}, {0, 1});
  const NDArray rows = f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), past = f32({1, 2, 1, 2}, {1, 2, 3, 4});
  const NDArray bytes = make_array({2}, {1, 2}, DataType::uint(8)), angles = f32({2, 1}, {1, 1});
  const AttributeSpec kernel("kernel_shape", Ints{2, 2}), shape("shape", Ints{2});
  for (const std::string_view op : {"Gelu", "Mish", "Softplus", "Softsign", "GlobalAveragePool", "GlobalMaxPool",
                                    "GlobalLpPool", "LpNormalization", "RandomNormalLike", "RandomUniformLike"})
    add(bases, op, 22, {x});
  for (const std::string_view op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) add(bases, op, 18, {bytes, bytes});
  add(bases, "BitwiseNot", 18, {bytes});
  add(bases, "Not", 13, {bools});
  add(bases, "LpPool", 18, {x}, {kernel});
  add(bases, "RandomNormal", 22, {}, {shape});
  add(bases, "RandomUniform", 22, {}, {shape});
  add(bases, "Multinomial", 22, {f32({1, 2}, {1, 2})});
  add(bases, "GroupNormalization", 21, {x, two, two}, {AttributeSpec("num_groups", 2)});
  add(bases, "RMSNormalization", 23, {x, two});
  add(bases, "AffineGrid", 20, {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), fixed(i64({4}, {1, 1, 2, 2}))});
  add(bases, "CenterCropPad", 18, {two, fixed(i64({1}, {3}))});
  add(bases, "Col2Im", 18, {f32({1, 2, 2}, {1, 2, 3, 4}), fixed(i64({2}, {1, 3})), fixed(i64({2}, {1, 2}))});
  add(bases, "MaxRoiPool", 22, {x, f32({1, 5}, {0, 0, 0, 1, 1})}, {AttributeSpec("pooled_shape", Ints{1, 1})});
  add(bases, "SimplifiedLayerNormalization", 13, {x, two}, {}, 2);
  add(bases, "RotaryEmbedding", 23, {x, angles, angles, i64({1, 2}, {0, 1})});
  add(bases, "Attention", 23, {x, x, x, boolean({2, 3}, {1, 1, 1, 1, 1, 1}), past, past}, {}, 3);
  add(bases, "Attention", 24, {x, x, x, Operand(), Operand(), Operand(), i64({1}, {2})});
  add(bases, "Swish", 24, {x});
  add(bases, "TensorScatter", 24, {x, f32({1, 2, 1, 2}, {1, 2, 3, 4}), i64({1}, {1})});
  add(bases, "Attention", 23, {rows, rows, rows}, {AttributeSpec("q_num_heads", 2), AttributeSpec("kv_num_heads", 2)});
}

// The operators of onnxruntime's domain, with operands that may be left out.
void add_microsoft_operators(std::vector<Base>& bases) {
  const auto add = [&](std::string_view op, const std::vector<Operand>& operands, const Attributes& attributes = {},
                       size_t outputs = 1) {
    GraphWriter graph = node_graph(op, operands, attributes, outputs, kMicrosoftDomain);
    bases.push_back({fmt::format("{}.{}", kMicrosoftDomain, op), kit::encode_model(std::move(graph).finish()), {}});
  };
  const NDArray image = f32({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), kernel = f32({2, 2, 1, 1}, {1, 2, 3, 4});
  const NDArray two = f32({2}, {1, 2}), square = f32({2, 2}, {1, 2, 3, 4}), rows = f32({1, 2, 2}, {1, 2, 3, 4});
  const NDArray ids = make_array({1, 2}, {0, 1}, DataType::int_(32)), past = f32({1, 1, 1, 2}, {1, 2});
  const NDArray lengths = make_array({1}, {2}, DataType::int_(32));
  const AttributeSpec relu("activation", "Relu"), one_head("num_heads", 1);
  add("FusedConv", {image, kernel, two, image}, {relu});
  add("NhwcConv", {image, kernel, two});
  add("NhwcFusedConv", {image, kernel, two, image}, {relu});
  add("FusedGemm", {square, square, two}, {relu});
  for (const std::string_view op : {"FusedMatMul", "TransposeMatMul"}) add(op, {rows, rows});
  for (const std::string_view op : {"Gelu", "QuickGelu"}) add(op, {rows});
  for (const std::string_view op : {"BiasGelu", "FastGelu"}) add(op, {rows, two});
  add("SkipLayerNormalization", {rows, rows, two, two, two}, {}, 4);
  add("SkipSimplifiedLayerNormalization", {rows, rows, two, two});
  add("EmbedLayerNormalization", {ids, ids, square, square, square, two, two, ids, ids}, {}, 3);
  add("Attention",
      {rows, f32({2, 6}, std::vector<double>(12, 1)), f32({6}, std::vector<double>(6, 1)), lengths,
       f32({2, 1, 1, 1, 2}, {1, 2, 3, 4})},
      {one_head}, 2);
  add("MultiHeadAttention",
      {rows, rows, rows, f32({6}, std::vector<double>(6, 1)), lengths, f32({1, 1, 2, 3}, std::vector<double>(6, 1)),
       past, past},
      {one_head}, 3);
  add("RotaryEmbedding",
      {rows, make_array({1}, {0}, DataType::int_(64)), f32({4, 1}, {1, 1, 1, 1}), f32({4, 1}, {1, 1, 1, 1})});
}

// Nodes with operands that may be left out, and those of old opsets.
void add_optional_operands(std::vector<Base>& bases) {
  const NDArray x = f32({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), two = f32({2}, {1, 2}), column = f32({2, 1}, {1, 1});
  add(bases, "Conv", 13, {x, f32({1, 2, 1, 1}, {1, 2}), f32({1}, {1})});
  add(bases, "ConvTranspose", 13, {x, f32({2, 1, 1, 1}, {1, 2}), f32({1}, {1})});
  add(bases, "MatMulInteger", 13,
      {make_array({1, 1}, {1}, DataType::uint(8)), make_array({1, 1}, {1}, DataType::uint(8)),
       make_array({}, {1}, DataType::uint(8)), make_array({}, {1}, DataType::uint(8))});
  add(bases, "Einsum", 13, {two, two, two}, {AttributeSpec("equation", "i,i,i->")});
  add(bases, "Einsum", 13, {two}, {AttributeSpec("equation", "i->")});
  for (const std::string_view op : {"Sum", "Mean", "Max", "Min"}) add(bases, op, 13, {two, two, two});
  add(bases, "Concat", 13, {two, two, two}, {AttributeSpec("axis", 0)});
  add(bases, "Slice", 13, {x, fixed(i64({1}, {0})), fixed(i64({1}, {1})), fixed(i64({1}, {3})), fixed(i64({1}, {1}))});
  add(bases, "Resize", 19, {x, fixed(f32({8}, {0, 0, 0, 0, 1, 1, 1, 1})), fixed(f32({4}, {1, 1, 2, 2}))},
      {AttributeSpec("coordinate_transformation_mode", "tf_crop_and_resize")});
  add(bases, "Resize", 19, {x, Operand(), Operand(), fixed(i64({4}, {1, 2, 3, 3}))});
  add(bases, "Resize", 10, {x, fixed(f32({4}, {1, 1, 2, 2}))});
  add(bases, "Upsample", 9, {x, fixed(f32({4}, {1, 1, 2, 2}))});
  add(bases, "Pad", 18, {two, fixed(i64({2}, {1, 1})), f32({}, {1}), fixed(i64({1}, {0}))});
  add(bases, "Cast", 19, {two}, {AttributeSpec("to", 1), AttributeSpec("saturate", 1)});
  add(bases, "CastLike", 19, {two, two}, {AttributeSpec("saturate", 1)});
  add(bases, "Gemm", 6, {column, f32({1, 2}, {1, 2}), f32({2, 2}, {1, 2, 3, 4})}, {AttributeSpec("broadcast", 1)});
  add(bases, "Add", 6, {x, two}, {AttributeSpec("broadcast", 1)});
  add(bases, "BatchNormalization", 7, {x, two, two, two, two}, {AttributeSpec("spatial", 1)});
  add(bases, "Dropout", 13, {two, fixed(f32({}, {0.5})), fixed(boolean({}, {1}))}, {}, 2);
}

// The copy of the model whose node has `inputs`.
Model with_inputs(const Model& model, std::vector<std::string_view> inputs) {
  Model changed = model;
  changed.graph.nodes[0].inputs = std::move(inputs);
  return changed;
}

// Checks that importing gives a module or an error that names the node.
void check(const Model& model, const Node& node, const ImportOptions& options) {
  try {
    import_model(model, options);
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(node_label(node)));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

void check_without_operands(const Base& base, const Model& model) {
  const Node& node = model.graph.nodes[0];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}: {} without operand {}", base.name, node.op_type, i));
    std::vector<std::string_view> inputs = node.inputs;
    inputs[i] = "";
    check(with_inputs(model, inputs), node, base.options);
  }
  for (size_t count = 0; count < node.inputs.size(); ++count) {
    SCOPED_TRACE(fmt::format("{}: {} with {} operands", base.name, node.op_type, count));
    check(with_inputs(model, {node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(count)}), node,
          base.options);
  }
}

std::vector<Base> all_bases() {
  std::vector<Base> bases = bases_of_the_data();
  add_young_operators(bases);
  add_optional_operands(bases);
  add_microsoft_operators(bases);
  return bases;
}

TEST(MalformedNodes, OperandsThatAreLeftOutAreAnErrorOrAModule) {
  std::set<std::string> missing;
  for (const std::string_view op : supported_ops()) missing.emplace(op);
  for (const std::string_view op : supported_ops(kMicrosoftDomain))
    missing.insert(fmt::format("{}.{}", kMicrosoftDomain, op));
  for (const Base& base : all_bases()) {
    const Model model = read(base.bytes);
    if (model.graph.nodes.size() != 1 || !kit::user_error_of([&] { import_model(model, base.options); }).empty())
      continue;
    missing.erase(op_label(model.graph.nodes[0]));
    check_without_operands(base, model);
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

// An operand that the operator cannot do without is named; a variadic operator takes no gap among its operands.
TEST(MalformedNodes, ANeededOperandIsNamed) {
  const NDArray x = f32({2}, {1, 2});
  const Operand none;
  const Attributes equation = {AttributeSpec("equation", "i,i->")};
  EXPECT_THAT(node_error("Einsum", 13, {none, x}, equation), HasSubstr("input 0 is left out"));
  EXPECT_THAT(node_error("Einsum", 13, {x, none}, equation), HasSubstr("input 1 is left out"));
  EXPECT_THAT(node_error("Sum", 13, {x, none, x}), HasSubstr("input 1 is left out"));
  EXPECT_THAT(node_error("Max", 13, {x, none}), HasSubstr("input 1 is left out"));
  EXPECT_THAT(node_error("Concat", 13, {x, none}, {AttributeSpec("axis", 0)}), HasSubstr("input 1 is left out"));
  EXPECT_THAT(node_error("Where", 13, {none, x, x}), HasSubstr("input 0 is left out"));
}

// Those of the ONNX specification, opsets 6 to 25, but is_test, where the specification allows any number, and those
// of onnxruntime's operators.
constexpr std::string_view kBooleans[] = {"align_corners",
                                          "allowzero",
                                          "antialias",
                                          "broadcast",
                                          "ceil_mode",
                                          "center_point_box",
                                          "count_include_pad",
                                          "detect_negative",
                                          "detect_positive",
                                          "do_rotary",
                                          "exclude_outside",
                                          "exclusive",
                                          "fmod",
                                          "interleaved",
                                          "is_causal",
                                          "is_packed_batching",
                                          "keepdims",
                                          "largest",
                                          "noop_with_empty_axes",
                                          "past_present_share_buffer",
                                          "periodic",
                                          "reverse",
                                          "saturate",
                                          "select_last_index",
                                          "sorted",
                                          "spatial",
                                          "storage_order",
                                          "training_mode",
                                          "transA",
                                          "transB",
                                          "transBatchA",
                                          "transBatchB",
                                          "unidirectional",
                                          "upper"};

// The copy of the model whose node has the attribute `name` with the value `number`.
Model with_attribute(const Model& model, std::string_view name, int64_t number) {
  Model changed = model;
  std::vector<Attribute>& attributes = changed.graph.nodes[0].attributes;
  std::erase_if(attributes, [&](const Attribute& attribute) { return attribute.name == name; });
  Attribute attribute;
  attribute.name = name;
  attribute.kind = AttributeKind::kInt;
  attribute.i = number;
  attributes.push_back(std::move(attribute));
  return changed;
}

TEST(MalformedNodes, ABooleanAttributeIsZeroOrOne) {
  std::set<std::string_view> unread(std::begin(kBooleans), std::end(kBooleans));
  size_t i = 0;
  for (const Base& base : all_bases()) {
    const Model model = read(base.bytes);
    if (model.graph.nodes.size() != 1 || !kit::user_error_of([&] { import_model(model, base.options); }).empty())
      continue;
    const Node& node = model.graph.nodes[0];
    if (find_op_row(node.domain, node.op_type) == nullptr || node.op_type == "Constant")
      continue;  // Constant takes one attribute, its value
    for (const std::string_view name : kBooleans) {
      for (const int64_t number : {int64_t{2}, int64_t{-1}, int64_t{1} << 32}) {
        if (!kit::is_chosen(i++)) continue;
        SCOPED_TRACE(fmt::format("{}: {} with {} = {}", base.name, model.graph.nodes[0].op_type, name, number));
        const std::string error =
            kit::user_error_of([&] { import_model(with_attribute(model, name, number), base.options); });
        EXPECT_THAT(error, HasSubstr(node_label(model.graph.nodes[0])));
        EXPECT_THAT(error, HasSubstr(fmt::format("'{}'", name)));
        if (error.find("expected 0 or 1") != std::string::npos) unread.erase(name);
      }
    }
  }
  if (kit::options().size != kit::TestSize::kFew) {
    EXPECT_THAT(unread, ::testing::IsEmpty());
  }
}

// The number of an element type is not cut to 32 bits.
TEST(MalformedNodes, AnElementTypeIsOneOfTheList) {
  const NDArray x = f32({2, 2}, {1, 2, 3, 4});
  for (const int64_t number : {(int64_t{1} << 32) + 1, int64_t{-1}}) {
    EXPECT_THAT(node_error("EyeLike", 13, {x}, {AttributeSpec("dtype", number)}), HasSubstr("'dtype' is "));
    EXPECT_THAT(node_error("HannWindow", 17, {fixed(i64({}, {3}))}, {AttributeSpec("output_datatype", number)}),
                HasSubstr("'output_datatype' is "));
    EXPECT_THAT(node_error("Cast", 13, {x}, {AttributeSpec("to", number)}), HasSubstr("'to' is "));
    EXPECT_THAT(node_error("RandomNormalLike", 13, {x}, {AttributeSpec("dtype", number)}), HasSubstr("'dtype' is "));
    for (const std::string_view op : {"LayerNormalization", "RMSNormalization"})
      EXPECT_THAT(node_error(op, 23, {x, f32({2}, {1, 1})}, {AttributeSpec("stash_type", number)}),
                  HasSubstr("'stash_type' is "));
    const NDArray image = f32({1, 1, 2, 2}, {1, 2, 3, 4});
    EXPECT_THAT(node_error("GroupNormalization", 21, {image, f32({1}, {1}), f32({1}, {1})},
                           {AttributeSpec("num_groups", 1), AttributeSpec("stash_type", number)}),
                HasSubstr("'stash_type' is "));
    EXPECT_THAT(node_error("Attention", 23, {image, image, image}, {AttributeSpec("softmax_precision", number)}),
                HasSubstr("'softmax_precision' is "));
  }
  EXPECT_THAT(node_error("LayerNormalization", 17, {x, f32({2}, {1, 1})}, {AttributeSpec("stash_type", 7)}),
              HasSubstr("attribute 'stash_type' names int64, expected a floating-point type"));
}

}  // namespace
}  // namespace headrace::onnx
