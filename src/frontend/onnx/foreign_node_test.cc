// Nodes without an op: what a backend is asked, the call of extern.onnx that they become, and what is said otherwise.
#include "frontend/onnx/tests/import_testing.h"
#include "object/base64.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

// det(relu(x)) of matrices, then a node of somebody else's domain.
GraphWriter foreign_model() {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}, std::string("n"), std::string("n")});
  graph.node("Relu", {"x"}, {}, "a");
  graph.node("Det", {"a"}, {}, "b");
  graph.node_with_outputs("Pair", {"b", "", "a"}, {"c", "d"}, {}, "com.example");
  graph.output("c", ElementType::kFloat, {int64_t{2}});
  graph.output("d", ElementType::kInt64, {std::string("n")});
  return graph;
}

TensorType tensor(const Shape& shape, DataType dtype = DataType::float_(32)) {
  return make_tensor_type(to_dims(shape), dtype);
}

TEST(ForeignNodes, TheQuestionToABackend) {
  std::vector<std::string> asked;
  ImportOptions options{.shapes = {{"x", {2, 3, 3}}}, .bound = {}};
  options.claim = [&](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> {
    std::string row = fmt::format("{} {}:", node.op, node.opset);
    for (const Expr& input : node.inputs) row += " " + to_string(input->checked_type());
    row += " ->";
    for (const TensorType& result : node.results) row += " " + (result ? ops::show(result) : "?");
    asked.push_back(row);
    if (node.op == "Det") return std::vector{tensor({2})};
    return node.results;
  };
  const ImportedModel imported = import_graph(foreign_model(), 13, options);
  EXPECT_THAT(asked, ElementsAre("Det 13: Tensor[(2, 3, 3), float32] -> ?",
                                 "com.example.Pair 1: Tensor[(2), float32] Tensor[(2, 3, 3), float32] -> "
                                 "Tensor[(2), float32] Tensor[(3), int64]"));
  EXPECT_THAT(main_text(imported), HasSubstr("(Tensor[(2), float32], Tensor[(3), int64])"));
  // The program has a text form, which means the same.
  const std::string text = relay::print_module(imported.module);
  EXPECT_THAT(text, HasSubstr("op=\"com.example.Pair\", opset=1, results=[\"float32[2]\", \"int64[3]\"]"));
  EXPECT_EQ(relay::print_module(relay::parse_module(text)), text);
  // Nothing here evaluates it.
  EXPECT_THAT(kit::user_error_of([&] { interp::run_main(imported.module, {f32({2, 3, 3}, std::vector<double>(18))}); }),
              HasSubstr("the op has no reference evaluation"));
}

TEST(ForeignNodes, TheNodeIsWhole) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.node_with_outputs("Scale", {"x"}, {"y"}, {AttributeSpec("by", 3)}, "com.example");
  graph.output("y", ElementType::kFloat, {int64_t{2}});
  std::string shown;
  ImportOptions options;
  options.claim = [&](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> {
    shown = node.bytes;
    return node.results;
  };
  const ImportedModel imported = import_graph(std::move(graph), 13, options);
  const auto main = imported.module->lookup("main").cast<relay::FunctionNode>();
  const auto& attrs = main->body.as<relay::CallNode>()->attrs_as<ops::ExternOnnxAttrs>();
  const std::vector<std::byte> bytes = decode_base64(attrs.node);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), shown);
  for (const char* part : {"Scale", "com.example", "by"}) EXPECT_THAT(shown, HasSubstr(part));
}

TEST(ForeignNodes, AnOpWithAFormHereIsNotAskedFor) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.node("Relu", {"x"}, {}, "y");
  graph.output("y", ElementType::kFloat, {int64_t{2}});
  ImportOptions options;
  options.claim = [](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> {
    ADD_FAILURE() << node.op;
    return node.results;
  };
  EXPECT_THAT(main_text(import_graph(std::move(graph), 13, options)), HasSubstr("Tensor[(2), float32]"));
}

// A form that the importer does not have of an operator that it has.
TEST(ForeignNodes, AFormThatIsMissingIsAskedFor) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.node("Relu", {"x"}, {AttributeSpec("slope", 3)}, "y");
  graph.output("y", ElementType::kFloat, {int64_t{2}});
  ImportOptions options;
  options.claim = [](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> { return node.results; };
  const ImportedModel imported = import_graph(std::move(graph), 13, options);
  EXPECT_THAT(relay::print_module(imported.module), HasSubstr("extern.onnx"));
}

TEST(ForeignNodes, NodesThatNobodyClaims) {
  ImportOptions options{.shapes = {{"x", {2, 3, 3}}}, .bound = {}};
  options.claim = [](const ops::OnnxNode&) -> Expected<std::vector<TensorType>> {
    return Refusal{HR_REASON_OP_UNSUPPORTED, "mine: it has no time"};
  };
  EXPECT_THAT(import_error(foreign_model(), 13, options),
              HasSubstr("(Det): the operator is not supported (mine: it has no time)"));
  options.claim = [](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> { return node.results; };
  EXPECT_THAT(import_error(foreign_model(), 13, options),
              HasSubstr("a type of a result whose sizes are not all numbers"));
  options.claim = [](const ops::OnnxNode&) -> Expected<std::vector<TensorType>> { return std::vector<TensorType>(); };
  EXPECT_THAT(import_error(foreign_model(), 13, options), HasSubstr("says the types of 0 results, and it has 1"));
  EXPECT_THAT(import_error(foreign_model(), 13, {.shapes = {{"x", {2, 3, 3}}}, .bound = {}}),
              HasSubstr("(Det): the operator is not supported"));
}

TEST(ForeignNodes, ResultsThatAreNoTypes) {
  const auto error = [](const std::string& results) {
    return kit::user_error_of([&] {
      relay::infer_type(
          relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { extern.onnx((%x,), "
                              "node=\"CgF4EgF5IgNGb28=\", op=\"Foo\", "
                              "opset=1, results=" +
                              results + ") }\n"));
    });
  };
  EXPECT_EQ(error("[\"float32[]\"]"), "");
  EXPECT_THAT(error("[\"int8[1,20]\", \"bool[3]\"]"), HasSubstr("it lists 2 results, and its node has 1 outputs"));
  EXPECT_THAT(error("[]"), HasSubstr("it has no results"));
  for (const char* wrong : {"float32", "float32[1", "float32[-1]", "float32[1,]", "float32[,1]", "float32[a]",
                            "what[1]", "float32[99999999999999999999]"})
    EXPECT_THAT(error(fmt::format("[\"{}\"]", wrong)), HasSubstr("is not a type of a result")) << wrong;
}

}  // namespace
}  // namespace headrace::onnx
