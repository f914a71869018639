// The graph of a placed program: its nodes, where their tensors come from, and the regions that hold them.
#include <gmock/gmock.h>

#include "partition/program_graph.h"
#include "partition/tests/region_testing.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ProgramGraph graph_of(const std::string& text, const Backends& backends = {}) {
  const OrderDecision decision(read_program(text), backends);
  return read_graph(place(decision), decision);
}

// "add 8" for an op of 8 bytes.
std::vector<std::string> nodes_of(const ProgramGraph& graph) {
  std::vector<std::string> rows;
  for (const GraphNode& node : graph.nodes) {
    rows.push_back(
        fmt::format("{} {}", name_of(node.kind),
                    node.kind == GraphNodeKind::kInput || node.kind == GraphNodeKind::kOutput ? node.name : node.op));
    if (node.block != kNone) rows.back() += fmt::format(" in {}", node.block);
  }
  return rows;
}

// "0.1>2.0": output 1 of node 0 is input 0 of node 2.
std::vector<std::string> edges_of(const ProgramGraph& graph) {
  std::vector<std::string> rows;
  for (const GraphEdge& edge : graph.edges)
    rows.push_back(fmt::format("{}.{}>{}.{}", edge.from, edge.output, edge.to, edge.input));
  return rows;
}

TEST(ProgramGraph, ConstantsAreNoNodes) {
  const ProgramGraph graph = graph_of("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(2f, %x)) }");
  EXPECT_THAT(nodes_of(graph), ElementsAre("input x", "op add", "op nn.relu", "output output0"));
  EXPECT_THAT(edges_of(graph), ElementsAre("0.0>1.1", "1.0>2.0", "2.0>3.0"));
  ASSERT_THAT(graph.nodes[1].inputs, SizeIs(2));
  EXPECT_THAT(*graph.nodes[1].inputs[0].shape, IsEmpty());
  EXPECT_EQ(graph.nodes[1].inputs[0].n_bytes, 4);
  EXPECT_THAT(*graph.nodes[1].inputs[1].shape, ElementsAre(2, 3));
  EXPECT_EQ(graph.nodes[1].outputs[0].n_bytes, 24);
  EXPECT_EQ(graph.nodes[1].outputs[0].dtype, "float32");
  EXPECT_THAT(graph.nodes[1].alternatives, IsEmpty());
  EXPECT_EQ(graph.nodes[2].placement, 1);
}

// Rows are found by counting calls, so an order that differs must not go unseen.
TEST(ProgramGraph, RowsOfOtherCallsAreRefused) {
  const OrderDecision decision(read_program("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(nn.relu(%x)) }"), {});
  PlacedModule placed = place(decision);
  ASSERT_THAT(placed.calls, SizeIs(2));
  EXPECT_NO_THROW(read_graph(placed, decision));
  std::swap(placed.calls[0], placed.calls[1]);
  EXPECT_THROW(read_graph(placed, decision), InternalError);
}

TEST(ProgramGraph, TuplesAndLetsAreSeenThrough) {
  const ProgramGraph graph = graph_of(
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(2), float32]) {\n"
      "  let %s = split(%x, indices_or_sections=2);\n"
      "  let %t = (%s.1, %y);\n"
      "  (add(%t.0, %t.1), %s.0, %y)\n}");
  EXPECT_THAT(nodes_of(graph), ElementsAre("input x", "input y", "op split", "op add", "output output0",
                                           "output output1", "output output2"));
  EXPECT_THAT(edges_of(graph), ElementsAre("0.0>2.0", "2.1>3.0", "1.0>3.1", "3.0>4.0", "2.0>5.0", "1.0>6.0"));
}

TEST(ProgramGraph, ARegionThatIsCalledTwiceIsTwoBlocksOfTheSameRows) {
  const ProgramGraph graph = graph_of(
      "def @r(%a: Tensor[(4), float32], %b: Tensor[(4), float32], Compiler=\"test\", Primitive=1) {\n"
      "  let %c = exp(%a); (add(%c, %b), %c)\n}\n"
      "def @main(%x: Tensor[(4), float32]) { let %p = @r(%x, %x); @r(negative(%p.0), %p.1) }");
  EXPECT_THAT(nodes_of(graph), ElementsAre("input x", "op exp in 0", "op add in 0", "op negative", "op exp in 1",
                                           "op add in 1", "output output0", "output output1"));
  EXPECT_THAT(edges_of(graph), ElementsAre("0.0>1.0", "1.0>2.0", "0.0>2.1", "2.0>3.0", "3.0>4.0", "4.0>5.0", "1.0>5.1",
                                           "5.0>6.0", "4.0>7.0"));
  EXPECT_EQ(graph.nodes[1].placement, graph.nodes[4].placement);
  EXPECT_EQ(graph.nodes[3].placement, 2);
  ASSERT_THAT(graph.blocks, SizeIs(2));
  EXPECT_EQ(graph.blocks[1].region, "r");
  EXPECT_EQ(graph.blocks[1].backend, "test");
}

TEST(ProgramGraph, CompositesAndBranches) {
  const std::string piece = "fn (%a: Tensor[(4), float32], Composite=\"t.f\") { nn.relu(exp(%a)) }(negative(%x))";
  // Outside of regions it is ops again.
  const ProgramGraph native = graph_of("def @main(%x: Tensor[(4), float32]) { " + piece + " }");
  EXPECT_THAT(nodes_of(native), ElementsAre("input x", "op negative", "op exp", "op nn.relu", "output output0"));
  EXPECT_THAT(edges_of(native), ElementsAre("0.0>1.0", "1.0>2.0", "2.0>3.0", "3.0>4.0"));
  const ProgramGraph composite = graph_of("def @r(%x: Tensor[(4), float32], Compiler=\"test\", Primitive=1) { " +
                                          piece + " }\ndef @main(%y: Tensor[(4), float32]) { @r(%y) }");
  EXPECT_THAT(nodes_of(composite),
              ElementsAre("input y", "op negative in 0", "op exp in 0", "op nn.relu in 0", "output output0"));
  EXPECT_THAT(edges_of(composite), ElementsAre("0.0>1.0", "1.0>2.0", "2.0>3.0", "3.0>4.0"));
  const ProgramGraph branches =
      graph_of("def @main(%c: bool, %x: Tensor[(4), float32]) { if (%c) { exp(%x) } else { %x } }");
  EXPECT_THAT(nodes_of(branches), ElementsAre("input c", "input x", "op exp", "control if", "output output0"));
  EXPECT_THAT(edges_of(branches), ElementsAre("1.0>2.0", "0.0>3.0", "2.0>3.1", "1.0>3.2", "3.0>4.0"));
}

// A backend that takes the ops named in its list.
class Taking : public Backend {
 public:
  Taking(std::string name, std::vector<std::string> ops) : name_(std::move(name)), ops_(std::move(ops)) {}
  std::string_view name() const override { return name_; }
  Verdict supports(const relay::CallNode& call) const override {
    if (std::find(ops_.begin(), ops_.end(), call.as_op()->name) != ops_.end()) return {};
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "not in the list"};
  }
  std::vector<Expected<RegionCode>> compile(const RegionRequest&) const override { return {}; }

 private:
  std::string name_;
  std::vector<std::string> ops_;
};

std::vector<std::string> alternatives_of(const GraphNode& node) {
  std::vector<std::string> rows;
  for (const GraphAlternative& one : node.alternatives)
    rows.push_back(fmt::format("{} {}: {}", one.backend, static_cast<int>(one.reason), one.message));
  return rows;
}

TEST(ProgramGraph, SaysWhyEachOtherBackendHasNotTheOp) {
  const Backends backends{std::make_shared<Taking>("one", std::vector<std::string>{"exp", "sin"}),
                          std::make_shared<Taking>("two", std::vector<std::string>{"exp", "cos"})};
  const ProgramGraph graph = graph_of("def @main(%x: Tensor[(4), float32]) { cos(tan(exp(%x))) }", backends);
  ASSERT_THAT(nodes_of(graph), ElementsAre("input x", "op exp in 0", "op tan", "op cos in 1", "output output0"));
  EXPECT_THAT(alternatives_of(graph.nodes[1]),
              ElementsAre("two 63: the backend takes the op, too; one is before it in the list",
                          "native 63: one takes the op, and every backend of the list is before native"));
  EXPECT_THAT(alternatives_of(graph.nodes[2]), ElementsAre("one 20: not in the list", "two 20: not in the list"));
  EXPECT_THAT(alternatives_of(graph.nodes[3]),
              ElementsAre("one 20: not in the list",
                          "native 63: two takes the op, and every backend of the list is "
                          "before native"));
}

}  // namespace
}  // namespace headrace::partition
