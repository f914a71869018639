// Functions of models: how much calls inline, what backends are asked about nodes of functions, and where names come
// from. python/tests/test_model_functions.py compares results with onnxruntime.
#include "frontend/onnx/model_functions.h"

#include <cmath>

#include "frontend/onnx/tests/import_testing.h"
#include "relay/text/print.h"

namespace headrace::onnx {
namespace {

using namespace testing;

// A graph of one call: y = local.`name`(x), x of two numbers.
GraphWriter calling(std::string_view name, const Attributes& attributes = {}) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.node_with_outputs(name, {"x"}, {"y"}, attributes, "local");
  graph.output("y", ElementType::kFloat);
  return graph;
}

// The function b = op(a), `count` times in a row.
std::string row_of(std::string_view name, std::string_view op, int count, std::string_view domain = "") {
  GraphWriter body;
  std::string value = "a";
  for (int i = 0; i < count; ++i) {
    const std::string next = i + 1 == count ? "b" : fmt::format("t{}", i);
    body.node_with_outputs(op, {value}, {next}, {}, domain);
    value = next;
  }
  return encode_function("local", name, {"a"}, {"b"}, std::move(body));
}

// The model imports opset 13. Relu is no news; Gelu came with opset 20.
TEST(ModelFunctions, TheirOwnOpsetCounts) {
  const auto error = [](std::string_view op, int64_t opset) {
    GraphWriter body;
    body.node_with_outputs(op, {"a"}, {"b"}, {});
    const std::string function = encode_function("local", "F", {"a"}, {"b"}, std::move(body), opset);
    return kit::user_error_of([&] { import_bytes(encode_with_functions(calling("F"), {function})); });
  };
  EXPECT_EQ(error("Gelu", 20), "");
  EXPECT_THAT(error("Gelu", 17), HasSubstr("(Gelu): the operator exists since opset 20, but the function imports opset "
                                           "17; export it with opset 20 or later (in the function local.F)"));
  EXPECT_THAT(error("Relu", 0),
              HasSubstr("(local.F): the function uses the operator 'Relu' and imports no version of the default "
                        "operator set; add one to its opset_import"));
}

// An operator of the default domain in a branch counts, too; functions that use only other domains need no version.
TEST(ModelFunctions, TheDefaultDomainIsImportedWhereItIsUsed) {
  GraphWriter inner;
  inner.node_with_outputs("Neg", {"a"}, {"c"}, {});
  inner.output("c", ElementType::kFloat);
  const kit::EncodedGraph branch = std::move(inner).finish();
  GraphWriter body;
  body.node_with_outputs("Choose", {"a"}, {"b"}, {AttributeSpec("then_branch", branch)}, "com.example");
  const std::string choose = encode_function("local", "F", {"a"}, {"b"}, std::move(body), 0);
  EXPECT_THAT(kit::user_error_of([&] { import_bytes(encode_with_functions(calling("F"), {choose})); }),
              HasSubstr("the function uses the operator 'Neg' and imports no version"));
  GraphWriter calls;
  calls.node_with_outputs("G", {"a"}, {"b"}, {}, "local");
  const std::string outer = encode_function("local", "F", {"a"}, {"b"}, std::move(calls), 0);
  const ImportedModel imported = import_bytes(encode_with_functions(calling("F"), {outer, row_of("G", "Neg", 1)}));
  expect_near(interp::run_main(imported.module, {f32({2}, {1, 2})}).at(0), {2}, {-1, -2}, 0);
}

TEST(ModelFunctions, SpansNameTheCall) {
  const ImportedModel imported = import_bytes(encode_with_functions(calling("F"), {row_of("F", "Exp", 1)}));
  const auto main = imported.module->lookup("main").cast<relay::FunctionNode>();
  EXPECT_THAT(to_string(main->body->span), HasSubstr("F_node_0/Exp_node_0"));
  expect_near(interp::run_main(imported.module, {f32({2}, {0, 1})}).at(0), {2}, {1, std::exp(1.0)}, 1e-6);
}

// 600 nodes call 600 nodes that call one: more than 2^18.
TEST(ModelFunctions, CallsInProductsAreTooMany) {
  const std::string bytes = encode_with_functions(
      calling("F"), {row_of("F", "G", 600, "local"), row_of("G", "H", 600, "local"), row_of("H", "Neg", 1)});
  EXPECT_THAT(kit::user_error_of([&] { import_bytes(bytes); }),
              HasSubstr("(local.F): the calls of the model's functions inline too much: 720600 nodes"));
}

// An attribute that each node of a function may read counts for each of them: 100 KB for 2,000 nodes, twice.
TEST(ModelFunctions, AttributesOfCallsAddUp) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  for (const char* result : {"y", "z"})
    graph.node_with_outputs("F", {"x"}, {result}, {AttributeSpec("table", Ints(12'500, 1))}, "local");
  for (const char* result : {"y", "z"}) graph.output(result, ElementType::kFloat);
  std::string function = row_of("F", "Neg", 2000);
  protozero::pbf_writer(function).add_string(6, "table");
  EXPECT_THAT(kit::user_error_of([&] { import_bytes(encode_with_functions(std::move(graph), {function})); }),
              HasSubstr("the model cannot be imported: node 'F_node_1' (local.F): the calls of the model's functions "
                        "inline too much: 4000 nodes of"));
}

TEST(ModelFunctions, ALongLabelIsReplaced) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  std::string node;
  protozero::pbf_writer writer(node);
  writer.add_string(1, "x");
  writer.add_string(2, "y");
  writer.add_string(3, std::string(1000, 'n'));
  writer.add_string(4, "F");
  writer.add_string(7, "local");
  graph.raw_field(1, node);
  graph.output("y", ElementType::kFloat);
  const std::string bytes = encode_with_functions(std::move(graph), {row_of("F", "Unheard", 1)});
  EXPECT_THAT(kit::user_error_of([&] { import_bytes(bytes); }), HasSubstr("node 'call_1/Unheard_node_0' (Unheard)"));
}

TEST(ModelFunctions, BackendsAreAskedAboutTheirNodes) {
  GraphWriter body;
  body.node_with_outputs("Det", {"a"}, {"b"}, {});
  std::string scaled;
  {
    GraphWriter other;
    other.node_with_outputs("Scale", {"a"}, {"b"}, {}, "com.example");
    scaled = encode_function("local", "G", {"a"}, {"b"}, std::move(other));
  }
  const std::string function = encode_function("local", "F", {"a"}, {"b"}, std::move(body), 11);
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{3}, int64_t{3}});
  graph.node_with_outputs("F", {"x"}, {"y"}, {}, "local");
  graph.node_with_outputs("G", {"x"}, {"z"}, {}, "local");
  graph.output("y", ElementType::kFloat);
  graph.output("b", ElementType::kFloat, {int64_t{7}});  // another `b` than that of the functions
  graph.node_with_outputs("Relu", {"x"}, {"b"});
  std::vector<std::string> asked;
  ImportOptions options;
  options.claim = [&](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> {
    asked.push_back(fmt::format("{} {} {} {}", node.op, node.opset, to_string(node.span),
                                node.results.at(0) ? "declared" : "open"));
    return std::vector{make_tensor_type(Shape{}, DataType::float_(32))};
  };
  const std::string error =
      kit::user_error_of([&] { import_bytes(encode_with_functions(std::move(graph), {function, scaled}), options); });
  EXPECT_THAT(error, HasSubstr("output 'b' is declared"));
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(asked[0], HasSubstr("Det 11 "));
  EXPECT_THAT(asked[0], HasSubstr("F_node_0/Det_node_0"));
  EXPECT_THAT(asked[0], HasSubstr("open"));
  EXPECT_THAT(asked[1], HasSubstr("com.example.Scale 1 "));
}

// A backend sees the bytes of the node, which lack the value that the call gives.
TEST(ModelFunctions, BackendsAreNotAskedAboutReferences) {
  std::string attribute;
  protozero::pbf_writer(attribute).add_string(1, "by");
  protozero::pbf_writer(attribute).add_string(21, "by");
  protozero::pbf_writer(attribute).add_int32(20, static_cast<int32_t>(AttributeKind::kInt));
  std::string node;
  protozero::pbf_writer writer(node);
  writer.add_string(1, "a");
  writer.add_string(2, "b");
  writer.add_string(4, "Scale");
  writer.add_string(7, "com.example");
  writer.add_message(5, attribute);
  GraphWriter body;
  body.raw_field(1, node);
  std::string function = encode_function("local", "F", {"a"}, {"b"}, std::move(body));
  protozero::pbf_writer(function).add_string(6, "by");
  ImportOptions options;
  options.claim = [](const ops::OnnxNode& asked) -> Expected<std::vector<TensorType>> {
    ADD_FAILURE() << asked.op;
    return asked.results;
  };
  const std::string bytes = encode_with_functions(calling("F", {AttributeSpec("by", 3)}), {function});
  EXPECT_THAT(kit::user_error_of([&] { import_bytes(bytes, options); }),
              HasSubstr("no backend is asked about nodes whose attributes a function gives"));
}

// Such an input has a name in the node's bytes, and no value.
TEST(ModelFunctions, BackendsAreNotAskedAboutInputsThatACallLeavesOut) {
  GraphWriter body;
  body.node_with_outputs("Scale", {"a", "c"}, {"b"}, {}, "com.example");
  ImportOptions options;
  options.claim = [](const ops::OnnxNode& asked) -> Expected<std::vector<TensorType>> {
    ADD_FAILURE() << asked.op;
    return asked.results;
  };
  const std::string bytes =
      encode_with_functions(calling("F"), {encode_function("local", "F", {"a", "c"}, {"b"}, std::move(body))});
  EXPECT_THAT(kit::user_error_of([&] { import_bytes(bytes, options); }),
              HasSubstr("no backend is asked about nodes whose inputs a call leaves out"));
}

// The name of a value that must be known is that of the graph, where it has one there.
TEST(ModelFunctions, AValueThatMustBeKnownIsNamed) {
  GraphWriter body;
  body.node_with_outputs("Reshape", {"a", "to"}, {"b"}, {});
  const std::string function = encode_function("local", "F", {"a", "to"}, {"b"}, std::move(body));
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.input("shape", ElementType::kInt64, {int64_t{1}});
  graph.node_with_outputs("F", {"x", "shape"}, {"y"}, {}, "local");
  graph.output("y", ElementType::kFloat);
  const std::string bytes = encode_with_functions(std::move(graph), {function});
  try {
    import_bytes(bytes);
    ADD_FAILURE();
  } catch (const ImportError& error) {
    ASSERT_EQ(error.refusals().size(), 1U);
    EXPECT_EQ(error.refusals()[0].value, "shape");
  }
}

TEST(ModelFunctions, ExternalDataOfFunctionsIsListed) {
  std::string entry;
  protozero::pbf_writer(entry).add_string(1, "location");
  protozero::pbf_writer(entry).add_string(2, "w.bin");
  std::string tensor;
  protozero::pbf_writer(tensor).add_message(13, entry);
  protozero::pbf_writer(tensor).add_int32(14, 1);
  GraphWriter body;
  body.node_with_outputs("Constant", {}, {"b"}, {AttributeSpec("value", kit::EncodedTensor{tensor})});
  const std::string bytes =
      encode_with_functions(calling("F"), {encode_function("local", "F", {"a"}, {"b"}, std::move(body))});
  EXPECT_THAT(external_locations(read(bytes)), ::testing::ElementsAre("w.bin"));
}

}  // namespace
}  // namespace headrace::onnx
