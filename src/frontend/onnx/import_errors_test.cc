// Every way in which a model or its options can be refused says what, where and what to do.
#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Not;

GraphWriter one_input() {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{2}, std::string("n")});
  return graph;
}
GraphWriter relu_model() {
  GraphWriter graph = one_input();
  graph.node("Relu", {"x"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  return graph;
}
std::string error_with(const ImportOptions& options) { return import_error(relu_model(), 13, options); }

std::vector<NodeRefusal> refusals_of(GraphWriter graph, int64_t opset = 13) {
  try {
    import_graph(std::move(graph), opset);
  } catch (const ImportError& error) {
    return error.refusals();
  }
  ADD_FAILURE() << "the model was imported";
  return {};
}

TEST(ImportErrors, AllOfAModelComeAtOnce) {
  GraphWriter graph = one_input();
  graph.node("Det", {"x"}, {}, "a");
  graph.node_with_outputs("Foo", {"a"}, {"b"}, {}, "com.example");
  graph.node("Cast", {"x"}, {AttributeSpec("to", 8)}, "c");
  graph.node("Add", {"a", "c"}, {}, "d");  // depends on refused ones only: not listed
  graph.output("d", ElementType::kFloat, {});
  const auto refusals = refusals_of(std::move(graph));
  ASSERT_EQ(refusals.size(), 3U);
  EXPECT_EQ(refusals[0].op, "Det");
  EXPECT_EQ(refusals[0].reason, HR_REASON_OP_UNSUPPORTED);
  EXPECT_EQ(refusals[1].op, "com.example.Foo");
  EXPECT_EQ(refusals[2].op, "Cast");
  EXPECT_EQ(refusals[2].reason, HR_REASON_DTYPE_UNSUPPORTED);
}

// python/tests/test_opsets.py compares all operators with the onnx package.
TEST(ImportErrors, AnOperatorThatIsNewerThanTheModel) {
  const auto refusals = [](std::string_view op, int64_t opset) {
    GraphWriter graph = one_input();
    graph.node(op, {"x"}, {}, "y");
    graph.output("y", ElementType::kFloat, {});
    return kit::user_error_of([&] { import_graph(std::move(graph), opset); });
  };
  EXPECT_THAT(refusals("Gelu", 19), HasSubstr("node 'Gelu_node_0' (Gelu): the operator exists since opset 20, but the "
                                              "model imports opset 19; export it with opset 20 or later"));
  EXPECT_EQ(refusals("Gelu", 20), "");
  EXPECT_THAT(refusals("Erf", 8), HasSubstr("since opset 9"));
  EXPECT_EQ(refusals("Erf", 9), "");
}

TEST(ImportErrors, TheTextNamesEveryNodeAndTheModel) {
  GraphWriter graph = one_input();
  graph.node("Det", {"x"}, {}, "a");
  graph.node("Cast", {"x"}, {AttributeSpec("to", 8)}, "c");
  graph.output("c", ElementType::kFloat, {});
  const std::string text = import_error(std::move(graph));
  EXPECT_THAT(text, HasSubstr("for 2 reasons"));
  EXPECT_THAT(text, HasSubstr("(Det): the operator is not supported"));
  EXPECT_THAT(text, HasSubstr("(Cast): a cast to string is not supported"));
  EXPECT_THAT(text, HasSubstr("\ndocs/onnx-support.md lists the supported operators, and a backend may run others: "
                              "python -m headrace compile ... --backends onnxruntime, or in Python "
                              "hr.compile(..., backends=[\"onnxruntime\"])"));
  EXPECT_THAT(text, HasSubstr("in: m.onnx"));
}

TEST(ImportErrors, BackendsAreNotSuggestedAfterSomeHaveRefused) {
  GraphWriter graph = one_input();
  graph.node("Det", {"x"}, {}, "a");
  graph.output("a", ElementType::kFloat, {});
  ImportOptions options{.shapes = {{"x", {2, 3}}}, .bound = {}};
  options.claim = [](const ops::OnnxNode&) -> Expected<std::vector<TensorType>> {
    return Refusal{HR_REASON_OP_UNSUPPORTED, "it knows no Det"};
  };
  const std::string text = import_error(std::move(graph), 13, options);
  EXPECT_THAT(text, HasSubstr("docs/onnx-support.md lists the supported operators"));
  EXPECT_THAT(text, Not(HasSubstr("onnxruntime")));
}

TEST(ImportErrors, ALongListIsCut) {
  GraphWriter graph = one_input();
  for (int i = 0; i < 60; ++i) graph.node("Det", {"x"});
  graph.output("x", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(graph)), HasSubstr("... and 10 more"));
}

TEST(ImportErrors, Names) {
  GraphWriter undefined = one_input();
  undefined.node("Add", {"x", "nothing"}, {}, "y");
  undefined.output("y", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(undefined)), HasSubstr("uses 'nothing', which nothing defines"));

  GraphWriter twice = one_input();
  twice.node("Relu", {"x"}, {}, "y");
  twice.node("Neg", {"x"}, {}, "y");
  twice.output("y", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(twice)), HasSubstr("value 'y' is defined twice"));

  GraphWriter cycle = one_input();
  cycle.node("Add", {"x", "b"}, {}, "a");
  cycle.node("Add", {"x", "a"}, {}, "b");
  cycle.output("b", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(cycle)), HasSubstr("uses 'b' before the node that makes it"));

  GraphWriter no_output = one_input();
  no_output.node("Relu", {"x"}, {}, "y");
  EXPECT_THAT(import_error(std::move(no_output)), HasSubstr("the graph has no outputs"));

  GraphWriter listed_twice = one_input();
  listed_twice.node("Relu", {"x"}, {}, "y");
  listed_twice.output("y", ElementType::kFloat, {});
  listed_twice.output("y", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(listed_twice)), HasSubstr("the output 'y' is listed twice"));

  GraphWriter unknown_output = one_input();
  unknown_output.output("z", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(unknown_output)), HasSubstr("the list of graph outputs uses 'z'"));
}

TEST(ImportErrors, CountsAndKinds) {
  const NDArray x = f32({1, 1, 3, 3}, std::vector<double>(9, 1));
  EXPECT_THAT(node_error("Add", 13, {x}), HasSubstr("it has 1 inputs; the operator takes 2 to 2"));
  EXPECT_THAT(node_error("Relu", 13, {x, x}), HasSubstr("it has 2 inputs"));
  EXPECT_THAT(node_error("Add", 13, {x, Operand()}), HasSubstr("input 1 is left out"));
  EXPECT_THAT(node_error("Relu", 13, {x}, {AttributeSpec("shape", 1)}),
              HasSubstr("attribute 'shape' is not supported"));
  EXPECT_THAT(node_error("LeakyRelu", 13, {x}, {AttributeSpec("alpha", 1)}),
              HasSubstr("attribute 'alpha' is not a float"));
  EXPECT_THAT(node_error("Concat", 13, {x, x}), HasSubstr("attribute 'axis' is missing"));
  for (const int64_t axis : {4, -5})
    EXPECT_THAT(node_error("Concat", 13, {x}, {AttributeSpec("axis", axis)}),
                HasSubstr(fmt::format("axis is {}, but the tensor has 4 dimensions", axis)));
  EXPECT_THAT(node_error("Concat", 13, {x}, {AttributeSpec("axis", 0), AttributeSpec("axis", 1)}),
              HasSubstr("attribute 'axis' is given twice"));
  EXPECT_THAT(node_error("MaxPool", 13, {x}, {AttributeSpec("kernel_shape", Ints{2, 2})}, 2),
              HasSubstr("its output 1 is not supported"));
}

// Names of a model must not be able to write lines of their own.
TEST(ImportErrors, NamesTakeNoLines) {
  GraphWriter graph;
  graph.input("x\nok", ElementType::kFloat, {int64_t{2}});
  graph.node("Bad\nok", {"x\nok"}, {}, "y\nok");
  graph.output("y\nok", ElementType::kFloat, {});
  const std::string unsupported = import_error(std::move(graph));
  EXPECT_THAT(unsupported, HasSubstr("(Bad\\x0aok): the operator is not supported; docs/onnx-support.md lists"));
  EXPECT_THAT(unsupported, HasSubstr("\n  at: Bad\\x0aok"));
  EXPECT_THAT(unsupported, Not(HasSubstr("\nok")));
  GraphWriter one;
  one.input("x\nok", ElementType::kFloat, {int64_t{2}});
  one.node("Relu", {"x\nok"}, {}, "y");
  one.output("y", ElementType::kFloat, {});
  const std::string unknown = import_error(std::move(one), 13, {.shapes = {{"q", {1}}}, .bound = {}});
  EXPECT_THAT(unknown, HasSubstr("the model's inputs are: x\\x0aok"));
  EXPECT_THAT(unknown, Not(HasSubstr("\nok")));
}

TEST(ImportErrors, DtypesAndShapes) {
  const NDArray x = f32({2}, {1, 2}), n = i64({2}, {1, 2});
  EXPECT_THAT(node_error("Sin", 13, {n}), HasSubstr("data of dtype int64 is not supported; it must be floating point"));
  EXPECT_THAT(node_error("Add", 13, {x, n}), HasSubstr("its inputs are of dtype float32 and int64"));
  EXPECT_THAT(node_error("Add", 13, {x, f32({3}, {1, 2, 3})}), HasSubstr("add"));
  EXPECT_THAT(node_error("Softmax", 13, {x}, {AttributeSpec("axis", 2)}),
              HasSubstr("axis is 2, but the tensor has 1 dimensions"));
}

TEST(ImportErrors, BackendsAreNotNamedForNodesWithGraphs) {
  const NDArray x = f32({2}, {1, 2});
  const std::string others = "a backend may run others";
  EXPECT_THAT(node_error("Foo", 13, {x}), HasSubstr(others));
  const ImportError loop({{.node = "l",
                           .op = "Loop",
                           .reason = HR_REASON_OP_UNSUPPORTED,
                           .message = "the operator is not supported",
                           .value = "",
                           .may_be_claimed = false}},
                         "a.onnx", false);
  EXPECT_THAT(loop.message(), AllOf(HasSubstr("lists the supported operators"), Not(HasSubstr(others))));
}

TEST(ImportErrors, AValueThatMustBeKnown) {
  const auto refusals = refusals_of(node_graph("Reshape", {f32({4}, {1, 2, 3, 4}), i64({2}, {2, 2})}, {}));
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].reason, HR_REASON_DATA_DEPENDENT);
  EXPECT_EQ(refusals[0].value, "x1");
  EXPECT_THAT(refusals[0].message, HasSubstr("its input 1 'shape' ('x1') must be known when the model is imported; "
                                             "bind the graph input"));
}

TEST(ImportErrors, Options) {
  const auto shape_of = [](std::vector<int64_t> shape) { return ImportOptions{.shapes = {{"x", shape}}, .bound = {}}; };
  EXPECT_THAT(error_with({.shapes = {{"z", {1}}}, .bound = {}}), HasSubstr("a shape is given for 'z'"));
  EXPECT_THAT(error_with(shape_of({2})),
              HasSubstr("input 'x' is given 1 dimensions (2), but the model declares 2: (2, n)"));
  EXPECT_THAT(error_with(shape_of({3, 4})), HasSubstr("is given 3 for dimension 0, which the model fixes to 2"));
  EXPECT_THAT(error_with(shape_of({2, -1})), HasSubstr("has the negative size -1"));
  EXPECT_THAT(error_with(shape_of({2, INT64_MAX})),
              HasSubstr("has the size 9223372036854775807, more than any machine"));
  EXPECT_THAT(error_with({.shapes = {}, .bound = {{"z", f32({1}, {1})}}}), HasSubstr("a constant is given for 'z'"));
  EXPECT_THAT(error_with({.shapes = {}, .bound = {{"x", i64({2, 1}, {1, 1})}}}),
              HasSubstr("the constant for input 'x' is int64, but the model declares float32"));
  EXPECT_THAT(error_with({.shapes = {}, .bound = {{"x", f32({3, 1}, {1, 1, 1})}}}),
              HasSubstr("is given 3 for dimension 0"));
  EXPECT_THAT(error_with({.shapes = {{"x", {2, 2}}}, .bound = {{"x", f32({2, 2}, {1, 1, 1, 1})}}}),
              HasSubstr("is bound and has a shape given"));
  EXPECT_THAT(error_with({.shapes = {}, .bound = {{"x", NDArray()}}}),
              HasSubstr("the constant for input 'x' is missing"));

  GraphWriter two = one_input();
  two.input("z", ElementType::kFloat, {std::string("n")});
  two.node("Add", {"x", "z"}, {}, "y");
  two.output("y", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(two), 13, {.shapes = {{"x", {2, 3}}, {"z", {4}}}, .bound = {}}),
              HasSubstr("dimension 'n' is 3 by input 'x' and 4 by input 'z'"));
}

TEST(ImportErrors, Inputs) {
  GraphWriter text;
  text.input("x", ElementType::kString, {int64_t{2}});
  text.output("x", ElementType::kString, {});
  EXPECT_THAT(import_error(std::move(text)), HasSubstr("input 'x' has element type string, which is not supported"));
}

// Returns the error of importing a Relu whose output is declared with this type; empty if there is none.
std::string declared_as(ElementType type, const std::vector<kit::DimSpec>& dims, const ImportOptions& options = {}) {
  GraphWriter graph = one_input();
  graph.node("Relu", {"x"}, {}, "y");
  graph.output("y", type, dims);
  return import_error(std::move(graph), 13, options);
}

TEST(ImportErrors, OutputsDeclaredAsSomethingElse) {
  EXPECT_THAT(
      declared_as(ElementType::kInt64, {int64_t{2}, std::string("n")}),
      HasSubstr("output 'y' is declared int64 (2, n), but the model computes float32 (2, n): the declaration is "
                "wrong, or a node before it"));
  EXPECT_THAT(declared_as(ElementType::kFloat, {int64_t{3}, std::string("n")}),
              HasSubstr("is declared float32 (3, n), but the model computes float32 (2, n)"));
  EXPECT_THAT(declared_as(ElementType::kFloat, {int64_t{2}}), HasSubstr("is declared float32 (2), but"));
  EXPECT_THAT(declared_as(ElementType::kUndefined, {int64_t{3}, int64_t{4}}), HasSubstr("is declared (3, 4), but"));
  EXPECT_THAT(declared_as(ElementType::kFloat, {int64_t{2}, int64_t{5}}, {.shapes = {{"x", {2, 4}}}, .bound = {}}),
              HasSubstr("is declared float32 (2, 5), but the model computes float32 (2, 4)"));
  EXPECT_THAT(declared_as(ElementType::kString, {}), HasSubstr("is declared string, but"));
}

TEST(ImportErrors, OutputsMayBeDeclaredVaguely) {
  EXPECT_EQ(declared_as(ElementType::kUndefined, {}), "");
  EXPECT_EQ(declared_as(ElementType::kFloat, {std::string(), std::string("other")}), "");
  EXPECT_EQ(declared_as(ElementType::kFloat, {int64_t{2}, int64_t{7}}), "");  // n may be 7
  EXPECT_EQ(declared_as(ElementType::kFloat, {std::string("n"), int64_t{4}}, {.shapes = {{"x", {2, 4}}}, .bound = {}}),
            "");
}

TEST(ImportErrors, AMissingFileOfManyTensorsIsToldOnce) {
  GraphWriter graph = one_input();
  for (const char* name : {"a", "b"}) {
    std::string tensor;
    protozero::pbf_writer writer(tensor);
    writer.add_int64(1, 2);
    writer.add_int32(2, static_cast<int32_t>(ElementType::kFloat));
    writer.add_string(8, name);
    writer.add_int32(14, 1);
    protozero::pbf_writer entry(writer, 13);
    entry.add_string(1, "location");
    entry.add_string(2, "weights.bin");
    entry.commit();
    graph.raw_field(5, tensor);
  }
  graph.node("Add", {"a", "b"}, {}, "y");
  graph.output("y", ElementType::kFloat);
  const std::string bytes = kit::encode_model(std::move(graph).finish(), {{"", 13}});
  const Model model = read_model(std::as_bytes(std::span(bytes)), "m.onnx", "/nowhere");
  const std::string text = kit::user_error_of([&] { import_model(model); });
  EXPECT_THAT(text,
              HasSubstr("cannot be imported: tensor 'a': its data lies outside of the model file: cannot read the "
                        "external data file '/nowhere/weights.bin': No such file or directory; put the file "
                        "there that came with the model"));
  EXPECT_THAT(text, Not(HasSubstr("tensor 'b'")));
}

// A branch that gives x, as a tensor of `elements` elements.
AttributeSpec branch(const char* name, const std::vector<int64_t>& elements) {
  GraphWriter graph("branch");
  graph.initializer("shape", ElementType::kInt64, {1}, std::as_bytes(std::span(elements)));
  graph.node("ConstantOfShape", {"shape"}, {}, "z");
  graph.output("z", ElementType::kFloat, {});
  return AttributeSpec(name, std::move(graph).finish());
}

TEST(ImportErrors, IfNeedsItsConditionAndItsBranches) {
  const auto if_error = [](bool known, const Attributes& attributes, const std::vector<std::string>& inputs = {"c"},
                           const std::vector<kit::DimSpec>& shape = {}) {
    GraphWriter graph = one_input();
    if (known) {
      graph.initializer("c", ElementType::kBool, {}, std::as_bytes(std::span("\1", 1)));
    } else {
      graph.input("c", ElementType::kBool, shape);
    }
    graph.node("If", inputs, attributes, "y");
    graph.output("y", ElementType::kFloat, {});
    return import_error(std::move(graph));
  };
  EXPECT_THAT(if_error(false, {}), HasSubstr("attribute 'then_branch' is not a graph"));
  EXPECT_THAT(if_error(false, {branch("then_branch", {3})}), HasSubstr("attribute 'else_branch' is not a graph"));
  EXPECT_THAT(if_error(false, {branch("then_branch", {3}), branch("else_branch", {4})}),
              HasSubstr("its branches give output 0 as Tensor[(3), float32] and as Tensor[(4), float32]"));
  EXPECT_THAT(if_error(false, {}, {"c"}, {int64_t{2}}), HasSubstr("its condition is not a single element"));
  EXPECT_THAT(if_error(false, {}, {"x"}), HasSubstr("its condition is a float32, expected a bool"));
  EXPECT_THAT(if_error(true, {}), HasSubstr("attribute 'then_branch' is not a graph"));
  EXPECT_THAT(if_error(true, {}, {}), HasSubstr("it has 0 inputs; it takes 1"));
  EXPECT_THAT(if_error(true, {AttributeSpec("then_branch", GraphWriter("empty").finish())}),
              HasSubstr("its branch has 0 inputs and 0 outputs, expected 0 and 1"));
}

TEST(ImportErrors, AConditionOfManyElements) {
  GraphWriter graph = one_input();
  graph.initializer("c", ElementType::kBool, {2}, std::as_bytes(std::span("\1\1", 2)));
  graph.node("If", {"c"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(graph)), HasSubstr("its condition is not a single element"));
}

TEST(ImportErrors, InitialisersThatCannotBe) {
  GraphWriter graph = one_input();
  graph.initializer("w", ElementType::kComplex64, {1}, std::as_bytes(std::span("8 bytes")));
  graph.node("Add", {"x", "w"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  EXPECT_THAT(import_error(std::move(graph)),
              HasSubstr("tensor 'w' has element type complex64, which is not supported"));
}

TEST(ImportErrors, Opsets) {
  EXPECT_THAT(import_error(relu_model(), 5), HasSubstr("5"));
  EXPECT_THAT(import_error(relu_model(), 26), HasSubstr("26"));
}

}  // namespace
}  // namespace headrace::onnx
