#include "frontend/onnx/file/read_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <protozero/pbf_writer.hpp>

#include "kit/errors.h"
#include "kit/onnx_writer.h"

namespace headrace::onnx {
namespace {

using kit::AttributeSpec;
using kit::GraphWriter;
using protozero::pbf_writer;
using ::testing::HasSubstr;

Model read(const std::string& bytes) { return read_model(std::as_bytes(std::span(bytes)), "m.onnx"); }

std::string error_of(const std::string& bytes) {
  return kit::user_error_of([&] { read(bytes); });
}

// A message with one field that holds `inner`.
std::string wrap(uint32_t field, const std::string& inner) {
  std::string bytes;
  pbf_writer(bytes).add_message(field, inner);
  return bytes;
}

std::string model_with_graph(const std::string& graph) { return kit::encode_model({graph}); }

std::string model_with_attribute(const std::string& attribute) {
  std::string node;
  pbf_writer writer(node);
  writer.add_string(3, "n1");
  writer.add_string(4, "Conv");
  writer.add_message(5, attribute);
  return model_with_graph(wrap(1, node));
}

// One graph of each kind of thing.
std::string sample_model() {
  GraphWriter inner("then");
  inner.node("Identity", {"x"}, {}, "t");
  inner.output("t", ElementType::kFloat, {});
  GraphWriter graph("main");
  graph.input("x", ElementType::kFloat, {int64_t{1}, std::string("N"), std::string()});
  graph.initializer("w", {2}, std::array{1.0F, 2.0F});
  graph.node("Foo", {"x", "", "w"},
             {AttributeSpec("i", 7), AttributeSpec("f", 1.5F), AttributeSpec("s", "text"),
              AttributeSpec("is", std::vector<int64_t>{1, -2}), AttributeSpec("fs", std::vector<float>{0.5F}),
              AttributeSpec("ss", std::vector<std::string>{"a", "b"}),
              AttributeSpec("t", kit::encode_tensor("k", ElementType::kInt8, {}, std::as_bytes(std::span("x", 1)))),
              AttributeSpec("g", std::move(inner).finish())},
             "y");
  graph.output("y", ElementType::kInt64, {int64_t{-1}});
  return kit::encode_model(std::move(graph).finish(), {{"", 13}, {"ai.onnx.ml", 2}}, 8);
}

TEST(ReadModel, EveryFieldArrives) {
  const std::string bytes = sample_model();
  Model model = read(bytes);
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.producer_name, "headrace.kit");
  EXPECT_EQ(default_opset(model), 13);
  ASSERT_EQ(model.opset_imports.size(), 2U);
  EXPECT_EQ(model.opset_imports[1].domain, "ai.onnx.ml");
  const Graph& graph = model.graph;
  EXPECT_EQ(graph.name, "main");
  ASSERT_EQ(graph.inputs.size(), 1U);
  const ValueType& type = graph.inputs[0].type;
  EXPECT_EQ(type.kind, ValueKind::kTensor);
  EXPECT_EQ(type.element_type, ElementType::kFloat);
  ASSERT_EQ(type.shape->size(), 3U);
  EXPECT_EQ((*type.shape)[0].value, 1);
  EXPECT_EQ((*type.shape)[1].symbol, "N");
  EXPECT_EQ((*type.shape)[1].value, -1);
  EXPECT_EQ((*type.shape)[2].symbol, "");
  EXPECT_EQ((*graph.outputs.at(0).type.shape)[0].value, -1);
  EXPECT_TRUE(graph.nodes.at(0).find_attribute("g")->graphs.at(0).outputs.at(0).type.shape->empty());  // a scalar
  EXPECT_EQ(graph.initializers.at(0).name, "w");
  EXPECT_EQ(graph.initializers.at(0).dims, std::vector<int64_t>{2});
}

TEST(ReadModel, EveryKindOfAttributeArrives) {
  const std::string bytes = sample_model();
  Model model = read(bytes);
  const Node& node = model.graph.nodes.at(0);
  EXPECT_EQ(node.op_type, "Foo");
  EXPECT_EQ(node.name, "Foo_node_0");
  EXPECT_THAT(node.inputs, ::testing::ElementsAre("x", "", "w"));
  EXPECT_THAT(node.outputs, ::testing::ElementsAre("y"));
  EXPECT_EQ(node.find_attribute("none"), nullptr);
  EXPECT_EQ(node.find_attribute("i")->i, 7);
  EXPECT_EQ(node.find_attribute("i")->kind, AttributeKind::kInt);
  EXPECT_EQ(node.find_attribute("f")->f, 1.5F);
  EXPECT_EQ(node.find_attribute("s")->s, "text");
  EXPECT_THAT(node.find_attribute("is")->ints, ::testing::ElementsAre(1, -2));
  EXPECT_THAT(node.find_attribute("fs")->floats, ::testing::ElementsAre(0.5F));
  EXPECT_THAT(node.find_attribute("ss")->strings, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(node.find_attribute("t")->tensors.at(0).type, ElementType::kInt8);
  EXPECT_EQ(node.find_attribute("g")->graphs.at(0).nodes.at(0).op_type, "Identity");
}

TEST(ReadModel, TheModelsMetadataIsKept) {
  std::string dim;
  pbf_writer(dim).add_string(2, "N");
  pbf_writer(dim).add_string(3, "DATA_\xff");  // no UTF-8, as the domain and what is said about the model
  std::string input;
  pbf_writer(input).add_string(1, "x");
  pbf_writer(input).add_message(2, wrap(1, wrap(2, wrap(1, dim) + wrap(1, ""))));
  std::string graph;
  pbf_writer(graph).add_string(10, "about the graph");
  pbf_writer(graph).add_message(11, input);
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_string(2, "producer");
  writer.add_string(4, "org.\xff");
  writer.add_int64(5, -7);
  writer.add_string(6, "about \xff the model");
  writer.add_message(7, graph);
  std::string property;
  pbf_writer(property).add_string(1, "key");
  pbf_writer(property).add_string(2, "value");
  writer.add_message(14, property);
  writer.add_message(14, std::string());
  const Model model = read(bytes);
  EXPECT_EQ(model.producer_name, "producer");
  EXPECT_EQ(model.domain, "org.\xff");
  EXPECT_EQ(model.version, -7);
  EXPECT_EQ(model.doc, "about \xff the model");
  ASSERT_EQ(model.properties.size(), 2U);
  EXPECT_EQ(model.properties[0].key, "key");
  EXPECT_EQ(model.properties[0].value, "value");
  EXPECT_EQ(model.properties[1].key, "");
  EXPECT_EQ(model.graph.doc, "about the graph");
  const std::vector<Dim>& shape = *model.graph.inputs.at(0).type.shape;
  EXPECT_EQ(shape.at(0).denotation, "DATA_\xff");
  EXPECT_EQ(shape.at(0).symbol, "N");
  EXPECT_EQ(shape.at(1).denotation, "");
}

TEST(ReadModel, MalformedNotesAboutTheModelAreErrors) {
  std::string number;
  pbf_writer(number).add_int64(1, 3);
  EXPECT_THAT(error_of(wrap(14, number)), HasSubstr("field 1 holds an integer where bytes belong"));
  EXPECT_THAT(error_of(wrap(14, "\x0a\x05k")), HasSubstr("reaches past the end"));
  EXPECT_THAT(error_of(wrap(5, "seven")), HasSubstr("field 5 holds bytes where an integer belongs"));
  EXPECT_THAT(error_of(wrap(2, "\xff")), HasSubstr("is not UTF-8"));
}

TEST(ReadModel, StringsAreViewsIntoTheInput) {
  const std::string bytes = sample_model();
  Model model = read(bytes);
  const char* name = model.graph.nodes[0].op_type.data();
  EXPECT_TRUE(name > bytes.data() && name < bytes.data() + bytes.size());
}

TEST(ReadModel, KindOfAttributeIsInferredForOldFiles) {
  std::string attribute;
  pbf_writer writer(attribute);
  writer.add_string(1, "axis");
  writer.add_int64(3, 2);
  const std::string bytes = model_with_attribute(attribute);
  Model model = read(bytes);
  EXPECT_EQ(model.graph.nodes.at(0).find_attribute("axis")->kind, AttributeKind::kInt);
}

TEST(ReadModel, PackedIntsAreRead) {
  std::string attribute;
  pbf_writer writer(attribute);
  writer.add_string(1, "pads");
  const int64_t pads[] = {1, 2, 3};
  writer.add_packed_int64(8, std::begin(pads), std::end(pads));
  const std::string bytes = model_with_attribute(attribute);
  Model model = read(bytes);
  EXPECT_THAT(model.graph.nodes.at(0).find_attribute("pads")->ints, ::testing::ElementsAre(1, 2, 3));
}

TEST(ReadModel, FunctionsAreRead) {
  std::string node;
  pbf_writer(node).add_string(4, "Relu");
  std::string function;
  pbf_writer writer(function);
  writer.add_string(1, "F");
  writer.add_string(4, "a");
  writer.add_string(5, "b");
  writer.add_string(6, "alpha");
  writer.add_message(7, node);
  writer.add_string(10, "my.domain");
  writer.add_string(13, "half");
  const std::string bytes = kit::encode_model({}) + wrap(25, function);
  Model model = read(bytes);
  ASSERT_EQ(model.functions.size(), 1U);
  EXPECT_EQ(model.functions[0].name, "F");
  EXPECT_EQ(model.functions[0].domain, "my.domain");
  EXPECT_EQ(model.functions[0].overload, "half");
  EXPECT_EQ(model.functions[0].nodes.at(0).op_type, "Relu");
}

TEST(ReadModel, NestedTypesAreRead) {
  // optional(sequence(tensor(float32)))
  std::string tensor;
  pbf_writer(tensor).add_int32(1, 1);
  std::string type = wrap(9, wrap(1, wrap(4, wrap(1, wrap(1, tensor)))));
  std::string info;
  pbf_writer(info).add_string(1, "x");
  pbf_writer(info).add_message(2, type);
  const std::string bytes = model_with_graph(wrap(11, info));
  Model model = read(bytes);
  const ValueType& outer = model.graph.inputs.at(0).type;
  EXPECT_EQ(outer.kind, ValueKind::kOptional);
  EXPECT_EQ(outer.inner.at(0).kind, ValueKind::kSequence);
  EXPECT_EQ(outer.inner[0].inner.at(0).element_type, ElementType::kFloat);
}

TEST(ReadModel, FileAndItsErrors) {
  auto path = std::filesystem::path(::testing::TempDir()) / "sample.onnx";
  std::ofstream(path, std::ios::binary) << sample_model();
  Model model = read_model(path.string());
  EXPECT_EQ(model.graph.nodes.size(), 1U);
  EXPECT_NE(model.file, nullptr);
  EXPECT_EQ(model.directory, path.parent_path().string());
  std::ofstream(path, std::ios::binary | std::ios::trunc).flush();
  auto error = [](const std::string& name) { return kit::user_error_of([&] { read_model(name); }); };
  EXPECT_THAT(error(path.string()), HasSubstr("is empty, not an ONNX model"));
  EXPECT_EQ(error("/no/such.onnx"), "cannot read the ONNX model '/no/such.onnx': No such file or directory");
  EXPECT_EQ(error("/"), "the ONNX model '/' is a directory; give the path of a file");
  EXPECT_EQ(error("/dev/null"), "the ONNX model '/dev/null' is not a regular file");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(error(path.string()), HasSubstr("is not a regular file"));  // and does not wait for a writer
  std::filesystem::remove(path);
}

TEST(ReadModel, MalformedInputSaysWhereAndWhat) {
  EXPECT_EQ(error_of(""), "'m.onnx' is empty, not an ONNX model; copy or export it again");
  EXPECT_EQ(error_of(std::string("\x08\x08", 2)),
            "'m.onnx' has no graph: it is not an ONNX model; give one that an exporter wrote");
  EXPECT_THAT(error_of("hello, world"), HasSubstr("'m.onnx' is text, not an ONNX model"));
  EXPECT_THAT(error_of("<!DOCTYPE html>\r\n<html>\t</html>\n"), HasSubstr("it may be a web page"));
  EXPECT_THAT(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"),
              HasSubstr("'m.onnx' is a pointer of Git LFS, not an ONNX model; fetch the file"));
  EXPECT_THAT(error_of(std::string("\x3a\x7f", 2)), HasSubstr("field 7 reaches past the end of its message"));
  EXPECT_THAT(error_of(std::string("\x38\x01", 2)), HasSubstr("field 7 holds an integer where bytes belong"));
  EXPECT_THAT(error_of(std::string("\x0b", 1)), HasSubstr("this is not a valid protobuf field"));
  EXPECT_THAT(error_of(model_with_graph("") + model_with_graph("")), HasSubstr("the model has two graphs"));
  std::string no_op_type;
  pbf_writer(no_op_type).add_string(3, "a\nb");
  std::string message = error_of(model_with_graph(wrap(1, no_op_type)));
  EXPECT_THAT(message, HasSubstr("a node has no op_type"));
  EXPECT_THAT(message, HasSubstr("m.onnx: model, graph, node 0 'a\\x0ab' (near byte "));
}

TEST(ReadModel, NamesAreUtf8) {
  std::string node;
  pbf_writer(node).add_string(2, "y\xff");  // an output, which would be a name in the manifest
  EXPECT_THAT(error_of(model_with_graph(wrap(1, node))), HasSubstr("the text 'y\\xff' is not UTF-8"));
}

TEST(ReadModel, BadAttributesAreErrors) {
  auto attribute_error = [](const std::function<void(pbf_writer&)>& fill) {
    std::string attribute;
    pbf_writer writer(attribute);
    fill(writer);
    return error_of(model_with_attribute(attribute));
  };
  EXPECT_THAT(attribute_error([](pbf_writer& w) { w.add_int64(3, 1); }), HasSubstr("an attribute has no name"));
  EXPECT_THAT(attribute_error([](pbf_writer& w) {
                w.add_string(1, "a");
                w.add_int32(20, 99);
              }),
              HasSubstr("unknown type 99"));
  EXPECT_THAT(attribute_error([](pbf_writer& w) {
                w.add_string(1, "a");
                w.add_int32(20, 4);
              }),
              HasSubstr("must hold exactly one value"));
  EXPECT_THAT(attribute_error([](pbf_writer& w) {
                w.add_string(1, "a");
                w.add_int64(20, int64_t{1} << 40);
              }),
              HasSubstr("field 20 is 1099511627776, out of range"));
  EXPECT_THAT(attribute_error([](pbf_writer& w) { w.add_string(3, "x"); }),
              HasSubstr("field 3 holds bytes where an integer belongs"));
  EXPECT_THAT(attribute_error([](pbf_writer& w) { w.add_double(2, 1); }),
              HasSubstr("field 2 holds a 64-bit value where a 32-bit value belongs"));
}

TEST(ReadModel, BadTensorsAreErrors) {
  std::string negative;
  pbf_writer(negative).add_int64(1, -3);
  EXPECT_THAT(error_of(model_with_graph(wrap(5, negative))), HasSubstr("a dimension of the tensor is -3"));
  std::string segment = wrap(3, "");
  EXPECT_THAT(error_of(model_with_graph(wrap(5, segment))), HasSubstr("tensors in segments are not supported"));
}

TEST(ReadModel, DeepNestingIsAnError) {
  std::string type;
  for (int depth = 0; depth < 1000; ++depth) type = wrap(4, wrap(1, type));
  EXPECT_THAT(error_of(model_with_graph(wrap(11, wrap(2, type)))), HasSubstr("types are nested deeper than 8 levels"));
  std::string graph;
  for (int depth = 0; depth < 1000; ++depth) {
    GraphWriter outer;
    outer.node("If", {"c"}, {AttributeSpec("then_branch", kit::EncodedGraph{graph})});
    graph = std::move(outer).finish().bytes;
  }
  EXPECT_THAT(error_of(model_with_graph(graph)), HasSubstr("subgraphs are nested deeper than 32 levels"));
}

TEST(DefaultOpset, RangeIsChecked) {
  auto opset_error = [](const std::vector<kit::OpsetSpec>& opsets) {
    const std::string bytes = kit::encode_model({}, opsets);
    return kit::user_error_of([&] { default_opset(read(bytes)); });
  };
  EXPECT_EQ(opset_error({{"", 6}}), "");
  EXPECT_EQ(opset_error({{"ai.onnx", 25}}), "");
  EXPECT_THAT(opset_error({{"", 5}}), HasSubstr("uses version 5 of the default operator set; versions 6 to 25"));
  EXPECT_THAT(opset_error({{"", 26}}), HasSubstr("uses version 26"));
  EXPECT_THAT(opset_error({{"", 13}, {"ai.onnx", 6}}), HasSubstr("imports two versions of the operator set 'ai.onnx'"));
  EXPECT_EQ(opset_error({{"", 13}, {"ai.onnx", 13}}), "");
  EXPECT_THAT(
      opset_error({{"ai.onnx.ml", 2}}),
      HasSubstr("imports no version of the default operator set; versions 6 to 25 are supported: add one to its "
                "opset_import"));
}

}  // namespace
}  // namespace headrace::onnx
