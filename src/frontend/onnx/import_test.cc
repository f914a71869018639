#include "frontend/onnx/import.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "frontend/onnx/tests/import_testing.h"
#include "object/structural_equal.h"
#include "relay/match.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::onnx {
namespace {

using namespace testing;

GraphWriter relu_graph(const std::vector<kit::DimSpec>& dims) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, dims);
  graph.node("Relu", {"x"}, {}, "y");
  graph.output("y", ElementType::kFloat, dims);
  return graph;
}

TEST(Import, MainTakesTheInputsAndGivesTheOutputs) {
  GraphWriter graph;
  graph.input("a", ElementType::kFloat, {int64_t{2}});
  graph.input("w", ElementType::kFloat, {int64_t{2}});
  graph.input("b", ElementType::kFloat, {int64_t{2}});
  graph.initializer("w", {2}, std::array{1.0F, 2.0F});
  graph.node("Add", {"a", "w"}, {}, "s");
  graph.node("Mul", {"s", "b"}, {}, "p");
  graph.output("p", ElementType::kFloat, {int64_t{2}});
  graph.output("s", ElementType::kFloat, {int64_t{2}});
  const ImportedModel imported = import_graph(std::move(graph));
  EXPECT_EQ(imported.inputs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(imported.outputs, (std::vector<std::string>{"p", "s"}));
  const auto results = interp::run_main(imported.module, {f32({2}, {10, 20}), f32({2}, {3, 4})});
  ASSERT_EQ(results.size(), 2U);
  expect_near(results[0], {2}, {33, 88}, 0);
  expect_near(results[1], {2}, {11, 22}, 0);
}

TEST(Import, ABoundInputIsAConstant) {
  const ImportedModel imported = import_graph(node_graph("Add", {f32({2}, {0, 0}), f32({2}, {0, 0})}, {}), 13,
                                              {.shapes = {}, .bound = {{"x1", f32({2}, {5, 6})}}});
  EXPECT_EQ(imported.inputs, std::vector<std::string>{"x0"});
  expect_near(interp::run_main(imported.module, {f32({2}, {1, 1})}).at(0), {2}, {6, 7}, 0);
}

TEST(Import, NamedDimensionsAreOneSymbolEach) {
  GraphWriter graph;
  graph.input("a", ElementType::kFloat, {std::string("batch size"), int64_t{3}});
  graph.input("b", ElementType::kFloat, {std::string("batch size"), int64_t{3}});
  graph.node("Add", {"a", "b"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  EXPECT_EQ(main_text(import_graph(std::move(graph))),
            "fn (Tensor[(batch_size, 3), float32], Tensor[(batch_size, 3), float32]) -> Tensor[(batch_size, 3), "
            "float32]");
}

TEST(Import, UnnamedDimensionsAreSymbolsOfTheirOwn) {
  EXPECT_EQ(main_text(import_graph(relu_graph({std::string(), std::string()}))),
            "fn (Tensor[(x_0, x_1), float32]) -> Tensor[(x_0, x_1), float32]");
}

TEST(Import, NamesThatPrintAlikeStayTwoSymbols) {
  const ImportedModel imported = import_graph(relu_graph({std::string("a.b"), std::string("a_b")}));
  const IRModule parsed = relay::parse_module(relay::print_module(imported.module));
  EXPECT_TRUE(structural_equal(imported.module, parsed)) << relay::print_module(imported.module);
}

TEST(Import, QuestionMarksAreNoNames) {
  EXPECT_EQ(main_text(import_graph(relu_graph({std::string("?"), std::string("?")}), 13,
                                   {.shapes = {{"x", {2, 3}}}, .bound = {}})),
            "fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32]");
}

TEST(Import, ResizeKeepsASymbolicBatch) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {std::string("n"), int64_t{1}, int64_t{2}, int64_t{2}});
  graph.initializer("scales", {4}, std::array{1.0F, 1.0F, 2.0F, 2.0F});
  graph.node("Resize", {"x", "", "scales"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  EXPECT_EQ(main_text(import_graph(std::move(graph))),
            "fn (Tensor[(n, 1, 2, 2), float32]) -> Tensor[(n, 1, 4, 4), float32]");
}

TEST(Import, AShapeFixesEveryUseOfItsNames) {
  GraphWriter graph;
  graph.input("a", ElementType::kFloat, {std::string("n")});
  graph.input("b", ElementType::kFloat, {std::string("n")});
  graph.node("Add", {"a", "b"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  EXPECT_EQ(main_text(import_graph(std::move(graph), 13, {.shapes = {{"a", {4}}}, .bound = {}})),
            "fn (Tensor[(4), float32], Tensor[(4), float32]) -> Tensor[(4), float32]");
}

TEST(Import, SymbolicDimensionsAreListed) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {std::string("batch"), int64_t{3}, std::string()});
  graph.input("z", ElementType::kFloat, {std::string("batch")});
  graph.input("w", ElementType::kFloat, {std::string("other")});
  graph.initializer("w", {1}, std::array{1.0F});
  const std::string bytes = kit::encode_model(std::move(graph).finish());
  const Model model = read(bytes);
  EXPECT_EQ(symbolic_dimensions(model), (std::vector<std::string>{"x[0] (batch)", "x[2]", "z[0] (batch)"}));
  EXPECT_EQ(symbolic_dimensions(model, {.shapes = {{"z", {7}}}, .bound = {}}), std::vector<std::string>{"x[2]"});
  EXPECT_TRUE(symbolic_dimensions(model, {.shapes = {{"x", {7, 3, 2}}}, .bound = {}}).empty());
}

// A graph of two inputs, of shapes (batch, 3, ?) and (batch, seq).
GraphWriter named_graph() {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {std::string("batch"), int64_t{3}, std::string("?")});
  graph.input("z", ElementType::kFloat, {std::string("batch"), std::string("seq")});
  graph.node("Relu", {"x"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  return graph;
}

TEST(Import, ASizeFixesADimensionByNameInAllInputs) {
  EXPECT_EQ(main_text(import_graph(named_graph(), 13, {.shapes = {}, .bound = {}, .dims = {{"batch", 5}}})),
            "fn (Tensor[(5, 3, x_2), float32], Tensor[(5, seq), float32]) -> Tensor[(5, 3, x_2), float32]");
  EXPECT_EQ(
      main_text(import_graph(named_graph(), 13, {.shapes = {{"x", {5, 3, 2}}}, .bound = {}, .dims = {{"seq", 7}}})),
      "fn (Tensor[(5, 3, 2), float32], Tensor[(5, 7), float32]) -> Tensor[(5, 3, 2), float32]");
}

TEST(Import, SizesOfDimensionsThatDoNotFit) {
  const auto error = [](const std::map<std::string, int64_t>& dims) {
    try {
      import_graph(named_graph(), 13, {.shapes = {{"x", {5, 3, 2}}}, .bound = {}, .dims = dims});
    } catch (const UserError& caught) {
      return caught.message();
    }
    return std::string("no error");
  };
  EXPECT_THAT(error({{"b", 5}}),
              HasSubstr("for dimension 'b', but the named dimensions of the model's inputs are: batch, seq"));
  EXPECT_THAT(error({{"?", 5}}), HasSubstr("for dimension '?', but"));
  EXPECT_THAT(error({{"seq", -1}}), HasSubstr("dimension 'seq' is given the negative size -1"));
  EXPECT_THAT(error({{"seq", int64_t{1} << 62}}), HasSubstr("more than any machine holds"));
  EXPECT_THAT(error({{"batch", 4}}), HasSubstr("dimension 'batch' is 4 by its own size and 5 by input 'x'"));
}

// Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters write `x.view(x.size(0), -1)`.
GraphWriter view_graph(const std::vector<kit::DimSpec>& dims) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, dims);
  graph.initializer("zero", {}, std::array<int64_t, 1>{0});
  graph.initializer("rest", {1}, std::array<int64_t, 1>{-1});
  graph.node("Shape", {"x"}, {}, "shape");
  graph.node("Gather", {"shape", "zero"}, {AttributeSpec("axis", 0)}, "n");
  graph.node("Unsqueeze", {"n"}, {AttributeSpec("axes", Ints{0})}, "n1");
  graph.node("Concat", {"n1", "rest"}, {AttributeSpec("axis", 0)}, "target");
  graph.node("Reshape", {"x", "target"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  return graph;
}

std::vector<std::string> ops_of(const ImportedModel& imported) {
  std::vector<std::string> names;
  const auto main = imported.module->lookup("main").cast<relay::FunctionNode>();
  relay::post_order(main->body, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr) names.push_back(call->as_op()->name);
  });
  return names;
}

TEST(Import, ShapeArithmeticOfAStaticShapeFoldsAway) {
  const ImportedModel imported = import_graph(view_graph({int64_t{2}, int64_t{3}, int64_t{4}}), 11);
  EXPECT_EQ(ops_of(imported), std::vector<std::string>{"reshape"});
  EXPECT_EQ(main_text(imported), "fn (Tensor[(2, 3, 4), float32]) -> Tensor[(2, 12), float32]");
}

TEST(Import, ShapeArithmeticOfASymbolicShapeKeepsTheSymbol) {
  const ImportedModel imported = import_graph(view_graph({std::string("n"), int64_t{3}, int64_t{4}}), 11);
  EXPECT_EQ(main_text(imported), "fn (Tensor[(n, 3, 4), float32]) -> Tensor[(n, 12), float32]");
  const NDArray x = NDArray::zeros({5, 3, 4}, DataType::float_(32));
  EXPECT_EQ(interp::run_main(imported.module, {x}).at(0).shape(), (Shape{5, 12}));
}

TEST(Import, SmallFloatsMadeOfConstantsAreConstants) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{1}, int64_t{1}, int64_t{2}, int64_t{2}});
  graph.initializer("halves", {4}, std::array{1.0F, 1.0F, 1.0F, 1.0F});
  graph.initializer("two", {}, std::array{2.0F});
  graph.initializer("mask", {4}, std::array{0.0F, 0.0F, 1.0F, 1.0F});
  graph.node("Mul", {"two", "mask"}, {}, "m");
  graph.node("Max", {"m", "halves"}, {}, "scales");
  graph.node("Resize", {"x", "", "scales"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  EXPECT_EQ(main_text(import_graph(std::move(graph))),
            "fn (Tensor[(1, 1, 2, 2), float32]) -> Tensor[(1, 1, 4, 4), float32]");
}

TEST(Import, SpansNameTheNodes) {
  const ImportedModel imported = import_graph(relu_graph({int64_t{2}}));
  const auto main = imported.module->lookup("main").cast<relay::FunctionNode>();
  EXPECT_EQ(to_string(main->body->span), "Relu_node_0");  // as the writer names its nodes
  EXPECT_EQ(main->params[0]->name_hint, "x");
}

// A head whose matrix is the transpose of a table of embeddings reads the table, and no copy of it.
TEST(Import, ATiedHeadReadsTheTable) {
  std::vector<float> table(3000);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 7) - 3;
  GraphWriter graph;
  graph.input("ids", ElementType::kInt64, {int64_t{2}});
  graph.initializer("w", {1000, 3}, table);
  graph.node("Gather", {"w", "ids"}, {}, "x");
  graph.node("Transpose", {"w"}, {{"perm", std::vector<int64_t>{1, 0}}}, "head");
  graph.node("MatMul", {"x", "head"}, {}, "y");
  graph.output("y", ElementType::kFloat, {int64_t{2}, int64_t{1000}});
  const ImportedModel imported = import_graph(std::move(graph));
  std::set<const Object*> tables;
  std::multiset<std::string> ops;
  relay::post_order(imported.module->lookup("main"), [&](const Expr& expr) {
    const auto* constant = expr.as<relay::ConstantNode>();
    if (constant != nullptr && constant->data.num_elements() == 3000) tables.insert(constant);
    if (const auto* call = relay::op_call(expr)) ops.insert(call->as_op()->name);
  });
  EXPECT_EQ(tables.size(), 1U);
  EXPECT_EQ(ops.count("transpose"), 0U);
  EXPECT_EQ(ops.count("nn.dense"), 1U);
  const NDArray ids = NDArray::from_vector<int64_t>({2}, DataType::int_(64), {0, 999});
  const NDArray y = interp::run_main(imported.module, {ids}).at(0);
  const auto at = [&](size_t row, size_t k) { return table[row * 3 + k]; };
  for (const size_t row : {size_t{0}, size_t{1}}) {
    const size_t id = row == 0 ? 0 : 999;
    for (const size_t column : {size_t{1}, size_t{500}}) {
      const float want = at(id, 0) * at(column, 0) + at(id, 1) * at(column, 1) + at(id, 2) * at(column, 2);
      EXPECT_EQ(y.data<float>()[row * 1000 + column], want);
    }
  }
}

// A view of the file would keep all of it in memory, however small the tensor.
TEST(Import, InitialisersHaveMemoryOfTheirOwn) {
  GraphWriter graph;
  graph.input("x", ElementType::kFloat, {int64_t{4}});
  graph.initializer("w", {4}, std::array{1.0F, 2.0F, 3.0F, 4.0F});
  graph.node("Add", {"x", "w"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  const std::string bytes = kit::encode_model(std::move(graph).finish());
  // The length of a name moves the weights to each remainder of 4 bytes within the file.
  for (int pad = 0; pad < 4; ++pad) {
    const auto path = std::filesystem::path(::testing::TempDir()) / fmt::format("own_memory_{}.onnx", pad);
    // Field 2 of ModelProto is the producer's name.
    std::ofstream(path, std::ios::binary)
        << "\x12" << static_cast<char>(pad) << std::string(static_cast<size_t>(pad), 'p') << bytes;
    ImportedModel imported;
    std::weak_ptr<const ModelFile> file;
    {
      const Model model = read_model(path.string());
      file = model.file;
      imported = import_model(model);
    }
    std::filesystem::remove(path);
    EXPECT_TRUE(file.expired());
    const auto main = imported.module->lookup("main").cast<relay::FunctionNode>();
    const auto* w = main->body.as<relay::CallNode>()->args[1].as<relay::ConstantNode>();
    ASSERT_NE(w, nullptr);
    expect_near(w->data, {4}, {1, 2, 3, 4}, 0);
  }
}

kit::EncodedGraph branch_of(std::string_view op, const std::string& result) {
  GraphWriter branch(op);
  branch.node(op, {"x"}, {}, "inner");  // both branches may use the name
  branch.node("Identity", {"inner"}, {}, result);
  branch.output(result, ElementType::kFloat, {});
  return std::move(branch).finish();
}

GraphWriter if_graph() {
  GraphWriter graph;
  graph.input("c", ElementType::kBool, {});
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  const Attributes branches = {AttributeSpec("then_branch", branch_of("Neg", "t")),
                               AttributeSpec("else_branch", branch_of("Abs", "e"))};
  graph.node("If", {"c"}, branches, "a");
  graph.node("If", {"c"}, branches, "b");
  graph.node("Add", {"a", "b"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  return graph;
}

TEST(Import, AnIfOfAKnownConditionIsItsBranch) {
  for (const double condition : {0.0, 1.0}) {
    const ImportedModel imported =
        import_graph(if_graph(), 13, {.shapes = {}, .bound = {{"c", boolean({}, {condition})}}});
    const double factor = condition != 0 ? -2 : 2;
    expect_near(interp::run_main(imported.module, {f32({2}, {3, 4})}).at(0), {2}, {3 * factor, 4 * factor}, 0);
  }
}

// A condition that only a run tells: both branches, in an `if`; also of a condition of shape [1] and of two results.
TEST(Import, AnIfOfAnUnknownConditionIsAnIf) {
  const ImportedModel imported = import_graph(if_graph());
  for (const double condition : {0.0, 1.0}) {
    const double factor = condition != 0 ? -2 : 2;
    expect_near(interp::run_main(imported.module, {boolean({}, {condition}), f32({2}, {3, 4})}).at(0), {2},
                {3 * factor, 4 * factor}, 0);
  }
  GraphWriter graph;
  graph.input("c", ElementType::kBool, {int64_t{1}});
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  const auto branch = [](const char* first, const char* second) {
    GraphWriter made(first);
    made.node(first, {"x"}, {}, "p");
    made.node(second, {"x"}, {}, "q");
    for (const char* name : {"p", "q"}) made.output(name, ElementType::kFloat, {});
    return std::move(made).finish();
  };
  graph.node_with_outputs(
      "If", {"c"}, {"a", "b"},
      {AttributeSpec("then_branch", branch("Neg", "Abs")), AttributeSpec("else_branch", branch("Abs", "Neg"))});
  graph.node("Sub", {"a", "b"}, {}, "y");
  graph.output("y", ElementType::kFloat, {});
  const ImportedModel two = import_graph(std::move(graph));
  expect_near(interp::run_main(two.module, {boolean({1}, {1}), f32({2}, {3, -4})}).at(0), {2}, {-6, 0}, 0);
  expect_near(interp::run_main(two.module, {boolean({1}, {0}), f32({2}, {3, -4})}).at(0), {2}, {6, 0}, 0);
}

TEST(Import, HalfAndInt8InitialisersKeepTheirDtype) {
  for (const char* dtype : {"float16", "bfloat16", "int8"}) {
    const DataType type = DataType::parse(dtype);
    const auto results = run_node("Identity", 13, {fixed(make_array({2}, {1, -2}, type))});
    EXPECT_EQ(results.at(0).dtype(), type);
    expect_near(results[0], {2}, {1, -2}, 0);
  }
}

TEST(Import, ALongChainNeedsNoDeepStack) {
  GraphWriter graph;
  std::string at = graph.input("x", ElementType::kFloat, {int64_t{1}});
  for (int i = 0; i < 20000; ++i) at = graph.node("Neg", {at});
  graph.output(at, ElementType::kFloat, {});
  const ImportedModel imported = import_graph(std::move(graph));
  expect_near(interp::run_main(imported.module, {f32({1}, {3})}).at(0), {1}, {3}, 0);
}

}  // namespace
}  // namespace headrace::onnx
