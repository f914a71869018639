// Destination passing, the memory plan and the graph program: golden texts, and the interpreter before and after.
#include <gtest/gtest.h>

#include <random>

#include "artifact/check_manifest.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "kit/golden.h"
#include "kit/options.h"
#include "ops/all_ops.h"
#include "ops/call_fusion.h"
#include "ops/register.h"
#include "ops/tensor/elementwise.h"
#include "passes/forms/bound_outputs.h"
#include "passes/fuse/fuse_ops.h"
#include "plan/arena.h"
#include "plan/graph_program.h"
#include "plan/join_views.h"
#include "plan/plan_memory.h"
#include "plan/program_text.h"
#include "plan/read_program.h"
#include "plan/verify_program.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/verify.h"

namespace headrace::plan {
namespace {

IRModule read_fused(const std::string& text) {
  ops::register_all_ops();
  const IRModule module = relay::parse_module("#[version = \"0.0.5\"]\n" + text);
  return relay::infer_type(passes::fuse_ops(relay::infer_type(module), {.max_depth = 1}));
}

Program read(const IRModule& fused) {
  GroupTable groups;
  return read_program(fused, groups);
}

Program planned(Program program) {
  plan_memory(program);
  EXPECT_EQ(find_breaches(program), std::vector<std::string>());
  return program;
}

IRModule to_destination_passing(const IRModule& fused) { return to_module(read(fused)); }

NDArray counting(const Shape& shape, float step) {
  NDArray array = NDArray::empty(shape, DataType::float_(32));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] = step * static_cast<float>(i) - 1;
  return array;
}

// Runs main of a module in destination passing form.
std::vector<NDArray> run_planned(const IRModule& module, const std::vector<NDArray>& inputs) {
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  std::vector<NDArray> args = inputs, outputs;
  for (size_t i = inputs.size(); i < main->params.size(); ++i) {
    const auto* type = main->params[i]->type_annotation.as<TensorTypeNode>();
    outputs.push_back(NDArray::zeros(type->concrete_shape(), type->dtype));
    args.push_back(outputs.back());
  }
  interp::run_main(module, args);
  return outputs;
}

// Two branches with reshapes, a shared value, outputs that are an input, a constant, a view and twice one value.
constexpr const char* kProgram =
    "def @main(%x: Tensor[(2, 6), float32], %y: Tensor[(12), float32]) {\n"
    "  %0 = reshape(%x, newshape=[12]);\n"
    "  %1 = nn.relu(%0);\n"
    "  %2 = add(%1, %y);\n"
    "  %3 = nn.relu(%2);\n"
    "  %4 = multiply(%3, 2f);\n"
    "  let %parts = split(%4, indices_or_sections=2);\n"
    "  %5 = add(%parts.0, %parts.1);\n"
    "  (reshape(%5, newshape=[2, 3]), %5, %x, const(Tensor[(2), float32], [1, 2]), nn.relu(%2))\n"
    "}\n";

TEST(DestinationPassing, GoldenText) {
  const std::filesystem::path folder = std::filesystem::path(HEADRACE_SOURCE_DIR) / "src/plan/tests";
  const IRModule module = to_destination_passing(read_fused(kProgram));
  EXPECT_TRUE(kit::matches_golden(folder / "destination_passing.relay", relay::print_module(module)));
  EXPECT_TRUE(kit::matches_golden(folder / "plan_memory.relay",
                                  relay::print_module(to_module(planned(read(read_fused(kProgram)))))));
}

TEST(DestinationPassing, ComputesTheSame) {
  const IRModule before = read_fused(kProgram);
  const std::vector<NDArray> inputs{counting({2, 6}, 0.25f), counting({12}, -0.5f)};
  const std::vector<NDArray> expected = interp::run_main(before, inputs);
  for (const IRModule& after : {to_destination_passing(before), to_module(planned(read(before)))}) {
    EXPECT_TRUE(relay::find_breaches(after, {.types = true}).empty());
    const std::vector<NDArray> actual = run_planned(after, inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(actual[i].content_equal(expected[i])) << "output " << i;
  }
}

TEST(DestinationPassing, EqualGroupsAreOneFunction) {
  const IRModule module = to_destination_passing(
      read_fused("def @main(%x: Tensor[(4), float32]) { nn.relu(exp(nn.relu(exp(nn.relu(%x))))) }"));
  EXPECT_EQ(module->functions().size(), 3u);
}

TEST(DestinationPassing, RefusesProgramsWithoutAFixedListOfSteps) {
  const auto error = [](const std::string& text) {
    return kit::user_error_of([&] { to_destination_passing(read_fused(text)); });
  };
  EXPECT_NE(error("def @main(%c: bool, %x: Tensor[(2), float32]) { if (%c) { exp(%x) } else { %x } }")
                .find("artifacts do not have yet"),
            std::string::npos);
  EXPECT_NE(error("def @main(%x: Tensor[(n, 2), float32]) { exp(%x) }")
                .find("parameter %x is Tensor[(n, 2), float32]: it has no static shape, which compiled code needs"),
            std::string::npos);
  EXPECT_NE(error("def @main(%p: (Tensor[(2), float32], float32)) { exp(%p.0) }")
                .find("parameter %p is (Tensor[(2), float32], float32): a compiled program takes tensors"),
            std::string::npos);
  EXPECT_NE(error("def @main(%x: Tensor[(5, 2), float32]) { argwhere(%x) }").find("a data-dependent size"),
            std::string::npos);
  EXPECT_NE(error("def @f(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%x) }\n"
                  "def @main(%x: Tensor[(2), float32]) { @f(%x) }")
                .find("artifacts do not have yet"),
            std::string::npos);
}

// Groups that FuseOps would not make: each error names what is wrong and where.
TEST(DestinationPassing, RefusesGroupsThatFuseOpsDidNotMake) {
  const std::string f = "def @main(%x: Tensor[(4), float32]) {\n  fn (%a: Tensor[(4), float32]";
  const std::string end = " }(%x)\n}";
  const auto refused = [](const std::string& text, const std::string& expected, const std::string& line) {
    const std::string error = kit::user_error_of([&] { to_destination_passing(read_fused(text)); });
    EXPECT_NE(error.find(expected), std::string::npos) << text << "\n" << error;
    EXPECT_NE(error.find(line), std::string::npos) << text << "\n" << error;
  };
  refused(f + ", Primitive=1) { let %b = exp(%a); exp(%b)" + end, "holds a relay.Let", ":3:");
  refused(f + ", Primitive=1) { add(%a, const(Tensor[(4), float32], [1, 2, 3, 4]))" + end, "holds a constant of 4 elem",
          ":3:");
  refused("def @main(%x: Tensor[(4), float32]) {\n  fn (Primitive=1) { exp(%x) }()\n}",
          "holds the variable %x, which is not a parameter of it", ":");
  refused(f + ", Primitive=1) { fn (%b: Tensor[(4), float32]) { exp(%b) }(%a)" + end,
          "holds a call of what is not an op", ":3:");
  refused(f + ", Primitive=0) { exp(%a)" + end, "artifacts do not have yet", ":3:");
  refused("def @main() {\n  let %f = fn (%a: float32, Primitive=1) { exp(%a) };\n  %f(1f)\n}",
          "artifacts do not have yet", ":");
  for (const char* mark : {"Primitive=1", "Compiler=\"x\"", "SkipOptimization=1"}) {
    refused(fmt::format("def @main(%x: Tensor[(4), float32], {}) {{ exp(%x) }}", mark),
            "main is marked Primitive, Comp", ":2:");
  }
}

TEST(DestinationPassing, TakesGroupsThatTheTextMarks) {
  const IRModule module = to_destination_passing(
      read_fused("def @main(%x: Tensor[(4), float32]) {\n"
                 "  fn (%a: Tensor[(4), float32], Primitive=1) { (add(exp(%a), 2f), %a).0 }(%x)\n}"));
  EXPECT_EQ(module->functions().size(), 2u);
}

// A group that takes a tuple of another group; nested, and with an item that it takes twice.
TEST(DestinationPassing, TuplesAreTakenApart) {
  const IRModule before = read_fused(
      "def @main(%x: Tensor[(4), float32]) {\n"
      "  %0 = fn (%a: Tensor[(4), float32], Primitive=1) { split(%a, indices_or_sections=2) }(%x);\n"
      "  fn (%t: ((Tensor[(2), float32], Tensor[(2), float32]), Tensor[(4), float32]), Primitive=1) {\n"
      "    (concatenate(%t.0), add(%t.1, concatenate((%t.0.1, %t.0.1))))\n"
      "  }((%0, %x))\n"
      "}");
  const NDArray x = counting({4}, 1);
  const std::vector<NDArray> expected = interp::run_main(before, {x});
  const std::vector<NDArray> actual = run_planned(to_destination_passing(before), {x});
  ASSERT_EQ(actual.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(actual[i].content_equal(expected[i])) << "output " << i;
}

// A kernel of one op takes nothing but its parameters, tuples of them and constants.
TEST(DestinationPassing, ItemsOfTakenTuplesAreParameters) {
  const IRModule module = to_destination_passing(
      read_fused("def @main(%x: Tensor[(4), float32]) {\n"
                 "  fn (%t: (Tensor[(4), float32], Tensor[(2), float32]), %u: Tensor[(4), float32], Primitive=1) {\n"
                 "    argsort(%t.0)\n"
                 "  }((%x, ones(shape=[2])), %x)\n}"));
  const relay::FunctionNode* group = nullptr;
  for (const auto& [name, function] : module->functions()) {
    const auto* found = function.as<relay::FunctionNode>();
    if (found->params.size() == 3) group = found;
  }
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->body.as<relay::CallNode>()->args[0], group->params[0]);
}

// The extent is a result of main before, and an item of the body's result after.
TEST(DestinationPassing, ExtentsHaveAnAttributeOfTheirOwn) {
  ops::register_all_ops();
  const IRModule module = relay::infer_type(
      relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(5), float32]) { (exp(%x), argwhere(%x)) }"));
  const IRModule bounded = relay::infer_type(passes::bound_outputs(module));
  const auto before = bounded->lookup("main").cast<relay::FunctionNode>();
  ASSERT_EQ(passes::bounded_outputs_of(*before).size(), 1u);
  EXPECT_EQ(passes::bounded_outputs_of(*before)[0].extent, 2u);
  const IRModule planned = to_destination_passing(relay::infer_type(passes::fuse_ops(bounded)));
  const auto after = planned->lookup("main").cast<relay::FunctionNode>();
  EXPECT_FALSE(after->attrs.contains(passes::kBoundedOutputs));
  const auto rows = passes::bounded_outputs_of(*after, kOutputExtents);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].output, 1u);
  EXPECT_EQ(rows[0].extent, 0u);
}

TEST(DestinationPassing, LongChains) {
  const int length = kit::by_depth(20'000);
  ops::register_all_ops();
  const relay::Var x = relay::make_var("x", make_tensor_type({make_int(4)}, DataType::float_(32)));
  Expr body = x;
  for (int i = 0; i < length; ++i) body = relay::make_call("exp", {body});
  const IRModule fused =
      passes::fuse_ops(relay::infer_type(make_module(relay::make_function({x}, body))), {.max_depth = 1});
  const Program chain = planned(read(relay::infer_type(fused)));
  WeightTable weights;
  const artifact::Program program = emit_graph_program(chain, {.inputs = {"x"}, .outputs = {"y"}}, weights);
  EXPECT_EQ(program.graph.steps.size(), static_cast<size_t>(length));
  EXPECT_EQ(artifact::arena_bytes(program.memory), 2 * Arena::kLine);
}

// The function of the process gets the group's own operands; text may mark another group.
TEST(GraphProgram, AFunctionOfTheProcessTakesNoOpIn) {
  ops::register_all_ops();
  ops::OpBuilder("plan_test.outside", "data f32[...] -> the same type.")
      .arg("data")
      .relation([](const relay::RelationInput& input) -> Type { return input.tensor(0); })
      .fusion(ops::FusionKind::opaque);
  get_op("plan_test.outside")->set(ops::kExternal, std::string("outside"));
  const auto emit = [](const std::string& body) {
    WeightTable weights;
    const IRModule fused = read_fused(
        "def @main(%x: Tensor[(4), float32]) {\n"
        "  fn (%a: Tensor[(4), float32], Primitive=1) { " +
        body + " }(%x)\n}");
    return emit_graph_program(planned(read(fused)), {.inputs = {"x"}, .outputs = {"y"}}, weights);
  };
  EXPECT_EQ(emit("plan_test.outside(%a)").graph.steps.at(0).action.index(), 1u);
  const std::string error = kit::user_error_of([&] { emit("plan_test.outside(exp(%a))"); });
  EXPECT_NE(error.find("a function marked Primitive computes an operand of it"), std::string::npos) << error;
  EXPECT_NE(error.find("plan_test.outside"), std::string::npos) << error;
}

TEST(GraphProgram, KeepsTheManifestsRules) {
  WeightTable weights;
  artifact::Program program = emit_graph_program(planned(read(read_fused(kProgram))),
                                                 {.inputs = {"x", "y"}, .outputs = {"a", "b", "c", "d", "e"}}, weights);
  EXPECT_EQ(program.graph.steps.size(), 10u);  // seven groups and three copies
  EXPECT_EQ(program.outputs[0].shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(weights.weights().size(), 1u);
  EXPECT_EQ(weights.nbytes(), 64);
  artifact::Manifest manifest;
  manifest.programs = {program};
  manifest.weights = weights.weights();
  EXPECT_NO_THROW(artifact::check_manifest(manifest));
}

TEST(WeightTable, StoresEachContentOnce) {
  WeightTable table;
  const NDArray a = counting({4, 8}, 1), b = counting({4, 8}, 1), c = counting({8, 4}, 1), d = counting({4}, 2);
  EXPECT_EQ(table.add(a), 0);
  EXPECT_EQ(table.add(b), 0);
  EXPECT_EQ(table.add(c), 1);  // another shape
  EXPECT_EQ(table.add(d), 2);
  EXPECT_EQ(table.weights()[1].offset, table.weights()[0].offset);
  EXPECT_EQ(table.weights()[2].offset, 128);
  EXPECT_EQ(table.nbytes(), 192);
}

// Random lifetimes, checked against every other range that is alive.
TEST(Arena, LiveRangesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Arena arena;
    std::map<int64_t, int64_t> alive;
    int64_t live_bytes = 0, most_bytes = 0;
    for (int i = 0; i < 200; ++i) {
      if (!alive.empty() && random() % 2 == 0) {
        auto it = alive.begin();
        std::advance(it, random() % alive.size());
        arena.give_back(it->first);
        live_bytes -= it->second;
        alive.erase(it);
        continue;
      }
      const int64_t size = random() % 1000;
      const int64_t offset = arena.take(size);
      const int64_t rounded = std::max<int64_t>(64, (size + 63) / 64 * 64);
      EXPECT_EQ(offset % 64, 0);
      EXPECT_LE(offset + rounded, arena.nbytes());
      for (const auto& [other, nbytes] : alive) EXPECT_TRUE(offset + rounded <= other || other + nbytes <= offset);
      alive.emplace(offset, rounded);
      live_bytes += rounded;
      most_bytes = std::max(most_bytes, live_bytes);
    }
    EXPECT_GE(arena.nbytes(), most_bytes);
  }
}

TEST(Arena, TakesTheSmallestGapThatFits) {
  Arena arena;
  EXPECT_EQ(arena.take(256), 0);
  EXPECT_EQ(arena.take(64), 256);
  EXPECT_EQ(arena.take(128), 320);
  EXPECT_EQ(arena.take(64), 448);
  arena.give_back(0);
  arena.give_back(320);
  EXPECT_EQ(arena.take(100), 320);
  EXPECT_EQ(arena.take(100), 0);
  EXPECT_EQ(arena.nbytes(), 512);
  arena.give_back(448);
  EXPECT_EQ(arena.take(640), 448);  // the gap at the end grows
  EXPECT_EQ(arena.nbytes(), 1088);
}

}  // namespace
}  // namespace headrace::plan
