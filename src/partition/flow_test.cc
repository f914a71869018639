#include "partition/flow.h"

#include "object/structural_equal.h"
#include "partition/annotations.h"
#include "partition/tests/region_testing.h"

namespace headrace::partition {
namespace {

Expr body_of(const std::string& text) {
  const IRModule module =
      read_program("def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n" + text + "}");
  return module->lookup("main").cast<relay::FunctionNode>()->body;
}

const char* op_of(const Flow& flow, int32_t node) {
  return flow.node(node).as<relay::CallNode>()->as_op()->name.c_str();
}

// The edges as "user operand", in their order; a value that is no node is "-", and the reader of the result "=".
std::vector<std::string> uses_of(const Flow& flow) {
  std::vector<std::string> uses;
  for (const Flow::Use& use : flow.uses) {
    if (use.value.is<OpNode>()) continue;
    uses.push_back(fmt::format("{} {}", use.to == kNone ? "=" : op_of(flow, use.to),
                               use.from == kNone ? "-" : op_of(flow, use.from)));
  }
  return uses;
}

TEST(Flow, HasEachNodeOnceAndEachUse) {
  const Flow flow = make_flow(body_of("%0 = exp(%x); add(tanh(%0), multiply(%0, %y))"));
  EXPECT_EQ(flow.num_nodes(), 4);
  EXPECT_EQ(uses_of(flow), (std::vector<std::string>{"exp -", "tanh exp", "add tanh", "multiply exp", "multiply -",
                                                     "add multiply", "= add"}));
  for (int32_t i = 0; i < flow.num_nodes(); ++i) EXPECT_EQ(flow.find(flow.node(i)), i);
}

// One end that several users take, a begin without an end inside, both around one edge, and the result.
TEST(Flow, AnnotationsAreReadAndRemovedInOneWalk) {
  const Expr body = body_of(
      "%0 = annotation.compiler_end(exp(annotation.compiler_begin(%x, compiler=\"a\")), compiler=\"a\");\n"
      "%1 = tanh(%0);\n"
      "%2 = multiply(annotation.compiler_begin(%0, compiler=\"b\"), annotation.compiler_begin(%y, compiler=\"b\"));\n"
      "annotation.compiler_end(add(annotation.compiler_begin(%1, compiler=\"b\"), %2), compiler=\"b\")");
  const Annotated read = read_annotations(body);
  const Flow plain = make_flow(body_of("%0 = exp(%x); add(tanh(%0), multiply(%0, %y))"));
  EXPECT_TRUE(structural_equal(read.flow.body, plain.body, {.map_free_vars = true}));
  EXPECT_EQ(uses_of(read.flow), uses_of(plain));
  EXPECT_EQ(read.flow.children, plain.children);
  EXPECT_EQ(read.flow.child_begins, plain.child_begins);
  for (int32_t i = 0; i < read.flow.num_nodes(); ++i) {
    EXPECT_EQ(read.flow.find(read.flow.node(i)), i);
    EXPECT_TRUE(read.flow.node(i)->has_checked_type());
  }
  // exp, tanh, multiply, add
  EXPECT_EQ(read.part, (std::vector<int32_t>{0, kNone, 1, 1}));
  EXPECT_EQ(read.compiler, (std::vector<std::string>{"a", "b"}));
}

TEST(Flow, AnnotatedBodiesKeepWhatHasNoAnnotation) {
  const Expr body = body_of(
      "add(exp(%x), annotation.compiler_end(tanh(annotation.compiler_begin(%y, compiler=\"a\")), "
      "compiler=\"a\"))");
  const Annotated read = read_annotations(body);
  EXPECT_EQ(read.flow.node(0), body.as<relay::CallNode>()->args[0]);
  EXPECT_NE(read.flow.body, body);
}

TEST(Flow, ANullChildIsAnError) {
  const relay::Var x = relay::make_var("x", make_tensor_type({4}, DataType::float_(32)));
  const Expr call = relay::make_call("add", {Expr(x), Expr()});
  EXPECT_THROW(make_flow(call), InternalError);
}

}  // namespace
}  // namespace headrace::partition
