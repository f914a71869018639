// Programs: their text form, their rules, views that join, several that share functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "kit/errors.h"
#include "ops/all_ops.h"
#include "passes/fuse/fuse_ops.h"
#include "plan/graph_program.h"
#include "plan/join_views.h"
#include "plan/plan_memory.h"
#include "plan/program_text.h"
#include "plan/read_program.h"
#include "plan/verify_program.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

IRModule parse(const std::string& text) {
  ops::register_all_ops();
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

IRModule fused(const std::string& text) { return relay::infer_type(passes::fuse_ops(parse(text))); }

Program program_of(const IRModule& module) {
  GroupTable groups;
  return read_program(module, groups);
}

void join_views(Program& program) {
  GroupTable groups;
  plan::join_views(program, groups);
}

NDArray numbers(const Shape& shape) {
  NDArray array = NDArray::empty(shape, DataType::float_(32));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] = static_cast<float>(i % 7) - 3;
  return array;
}

std::vector<NDArray> run(const Program& program, const std::vector<NDArray>& inputs) {
  std::vector<NDArray> args = inputs, outputs;
  for (const size_t output : program.outputs) {
    const View& view = program.views[output];
    outputs.push_back(NDArray::zeros(view.shape, view.type->dtype));
    args.push_back(outputs.back());
  }
  interp::run_main(to_module(program), args);
  return outputs;
}

void expect_runs_as(const IRModule& module, const Program& program, const std::vector<NDArray>& inputs) {
  const std::vector<NDArray> expected = interp::run_main(module, inputs), actual = run(program, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(actual[i].content_equal(expected[i])) << "output " << i;
}

constexpr const char* kTwoConvolutions =
    "def @main(%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(2, 3, 1, 1), float32],\n"
    "          %v: Tensor[(5, 3, 1, 1), float32]) {\n"
    "  %0 = nn.conv2d(%x, %w, kernel_size=[1, 1]);\n"
    "  %1 = nn.relu(nn.conv2d(%x, %v, kernel_size=[1, 1]));\n"
    "  %2 = concatenate((%0, %1), axis=1);\n"
    "  (nn.max_pool2d(%2, pool_size=[2, 2]), nn.max_pool2d(%0, pool_size=[4, 4]))\n"
    "}\n";

TEST(JoinViews, AConcatOfTwoConvolutionsIsTwoViewsOfOneStorage) {
  const IRModule module = fused(kTwoConvolutions);
  Program program = program_of(module);
  ASSERT_EQ(program.steps.size(), 5u);
  join_views(program);
  ASSERT_EQ(program.steps.size(), 4u);
  EXPECT_EQ(program.functions.size(), 4u);
  const View& first = program.views[program.steps[0].outputs[0]];
  const View& second = program.views[program.steps[1].outputs[0]];
  EXPECT_EQ(first.base, second.base);
  EXPECT_EQ(first.byte_offset, 0);
  EXPECT_EQ(second.byte_offset, 2 * 4 * 4 * 4);
  EXPECT_EQ(program.bases[first.base].nbytes, 7 * 4 * 4 * 4);
  plan_memory(program);
  EXPECT_THAT(find_breaches(program), IsEmpty());
  EXPECT_EQ(arena_bytes(program, {}), 7 * 4 * 4 * 4);
  expect_runs_as(module, program, {numbers({1, 3, 4, 4}), numbers({2, 3, 1, 1}), numbers({5, 3, 1, 1})});
}

// A batch of two: the channels of a part lie apart for the two images.
constexpr const char* kTwoImages =
    "def @main(%x: Tensor[(2, 3, 4, 4), float32], %w: Tensor[(2, 3, 1, 1), float32],\n"
    "          %v: Tensor[(5, 3, 1, 1), float32]) {\n"
    "  %0 = nn.conv2d(%x, %w, kernel_size=[1, 1]);\n"
    "  %1 = nn.relu(nn.conv2d(%x, %v, kernel_size=[1, 1]));\n"
    "  nn.max_pool2d(concatenate((%0, %1), axis=1), pool_size=[2, 2])\n"
    "}\n";

TEST(JoinViews, PartsWithGapsAreViewsWithStrides) {
  const IRModule module = fused(kTwoImages);
  Program program = program_of(module);
  ASSERT_EQ(program.steps.size(), 4u);
  join_views(program);
  ASSERT_EQ(program.steps.size(), 3u);
  EXPECT_EQ(program.functions.size(), 3u);
  for (const size_t step : {0u, 1u}) {
    EXPECT_EQ(program.views[program.steps[step].outputs[0]].strides, (Shape{7 * 16, 16, 4, 1}));
    EXPECT_EQ(relay::result_strides_of(*program.functions[*program.steps[step].function].second),
              (Shape{7 * 16, 16, 4, 1}));
  }
  EXPECT_EQ(program.views[program.steps[1].outputs[0]].byte_offset, 2 * 16 * 4);
  plan_memory(program);
  EXPECT_THAT(find_breaches(program), IsEmpty());
  EXPECT_EQ(arena_bytes(program, {}), 2 * 7 * 16 * 4);
  expect_runs_as(module, program, {numbers({2, 3, 4, 4}), numbers({2, 3, 1, 1}), numbers({5, 3, 1, 1})});
}

// The rules see what a view with gaps leaves unwritten: with one part gone, the pool reads bytes that nothing wrote.
TEST(JoinViews, APartThatIsMissingIsABreach) {
  Program program = program_of(fused(kTwoImages));
  join_views(program);
  program.steps.erase(program.steps.begin() + 1);
  EXPECT_THAT(find_breaches(program), ElementsAre(HasSubstr("reads bytes that no earlier step wrote")));
}

// Parts with gaps that are read elsewhere too, whose kernels are opaque, that are reshaped, or are results of another
// concatenation.
TEST(JoinViews, LeavesPartsThatMayNotHaveGaps) {
  const auto steps_after = [](const std::string& body) {
    Program program = program_of(
        fused("def @main(%x: Tensor[(2, 3, 4, 4), float32], %w: Tensor[(3, 3, 1, 1), float32]) {\n"
              "  let %a = nn.conv2d(%x, %w, kernel_size=[1, 1]); let %b = nn.avg_pool2d(%x, pool_size=[1, 1]);\n" +
              body + " }\n"));
    const size_t before = program.steps.size();
    join_views(program);
    EXPECT_EQ(program.steps.size(), before) << body;
    EXPECT_THAT(find_breaches(program), IsEmpty());
  };
  steps_after("let %c = concatenate((%a, %b), axis=1); (nn.max_pool2d(%c), nn.max_pool2d(%a))");
  steps_after("nn.max_pool2d(concatenate((%a, cumsum(%b, axis=1)), axis=1))");
  steps_after("nn.max_pool2d(concatenate((%a, %b), axis=3))");  // runs of 16 bytes
  steps_after(
      "nn.max_pool2d(concatenate((%a, reshape(nn.avg_pool2d(reshape(%x, newshape=[6, 1, 4, 4]), "
      "pool_size=[1, 1]), newshape=[2, 3, 4, 4])), axis=1))");
}

// One part is an input, one occurs twice, one is an output.
TEST(JoinViews, LeavesPartsThatAreNotMemoryOfTheirOwn) {
  const auto steps_after = [](const std::string& body) {
    Program program =
        program_of(fused("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) { " + body + " }\n"));
    const size_t before = program.steps.size();
    join_views(program);
    EXPECT_EQ(program.steps.size(), before) << body;
    EXPECT_THAT(find_breaches(program), IsEmpty());
  };
  steps_after("nn.softmax(concatenate((nn.softmax(%x), %y)))");
  steps_after("let %a = nn.softmax(%x); nn.softmax(concatenate((%a, %a)))");
  steps_after("let %a = nn.softmax(%x); (%a, nn.softmax(concatenate((%a, nn.softmax(%y)))))");
}

TEST(JoinViews, AnOutputIsWrittenByTheParts) {
  const IRModule module = relay::infer_type(
      passes::fuse_ops(parse("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(1, 3), float32]) {\n"
                             "  concatenate((concatenate((nn.softmax(%y), nn.softmax(%x))), nn.log_softmax(%x)))\n}\n"),
                       {.max_depth = 1}));
  Program program = program_of(module);
  join_views(program);
  EXPECT_EQ(program.steps.size(), 3u);
  for (const Step& step : program.steps)
    EXPECT_TRUE(program.bases[program.views[step.outputs[0]].base].kind == Base::Kind::output);
  EXPECT_THAT(find_breaches(program), IsEmpty());
  expect_runs_as(module, program, {numbers({2, 3}), numbers({1, 3})});
}

// ---- the text form

TEST(ProgramText, ReadsBack) {
  for (const bool is_planned : {false, true}) {
    Program program = program_of(fused(kTwoConvolutions));
    join_views(program);
    if (is_planned) plan_memory(program);
    const std::string text = relay::print_module(to_module(program));
    Program read = from_module(relay::infer_type(relay::parse_module(text)));
    EXPECT_THAT(find_breaches(read), IsEmpty());
    if (is_planned) plan_memory(read);  // the arena was read as one storage
    EXPECT_EQ(relay::print_module(to_module(read)), text);
    plan_memory(read);
    WeightTable weights;
    const ProgramNames names{.inputs = {"x", "w", "v"}, .outputs = {"a", "b"}};
    EXPECT_EQ(emit_graph_program(read, names, weights).graph.steps.size(), 4u);
  }
}

constexpr const char* kStrided =
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3, 2), float32], num_outputs=1) -> () {\n"
    "  let %s0 = memory.alloc_storage(size=24);\n"
    "  let %t = memory.view(%s0, byte_offset=0, shape=[3, 2], dtype=\"float32\");\n"
    "  %0 = (%x,);\n"
    "  %1 = (%t,);\n"
    "  let %_ = call_dps(@turn, %0, %1);\n"
    "  let %u = memory.view(%s0, byte_offset=0, shape=[2, 3], dtype=\"float32\", strides=[1, 2]);\n"
    "  let %v = memory.view(%y, byte_offset=0, shape=[2, 3], dtype=\"float32\", strides=[1, 2]);\n"
    "  %2 = (%u,);\n"
    "  %3 = (%v,);\n"
    "  let %_1 = call_dps(@twice, %2, %3);\n"
    "  let %_2 = memory.kill(%s0);\n"
    "  ()\n"
    "}\n"
    "def @turn(%p: Tensor[(2, 3), float32], Primitive=1) { transpose(%p) }\n"
    "def @twice(%p: Tensor[(2, 3), float32], Primitive=1) { add(%p, %p) }\n";

// Views with strides: the transpose of a storage is read, the transpose of the output is written.
TEST(ProgramText, ViewsHaveStrides) {
  const Program program = from_module(parse(kStrided));
  EXPECT_THAT(find_breaches(program), IsEmpty());
  const NDArray x = numbers({2, 3});
  const NDArray y = run(program, {x}).at(0);
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(y.data<float>()[k * 2 + i], 2 * x.data<float>()[i * 3 + k]);
  }
}

TEST(ProgramText, StoragesHaveALocation) {
  std::string text = kStrided;
  text.replace(text.find("size=24"), 7, "size=24, location=\"cuda:1/pinned\"");
  Program program = from_module(parse(text));
  plan_memory(program);
  EXPECT_EQ(arena_bytes(program, {}), 0);
  EXPECT_EQ(arena_bytes(program, *artifact::parse_location("cuda:1/pinned")), 64);
  EXPECT_THAT(relay::print_module(to_module(program)), HasSubstr("location=\"cuda:1/pinned\""));
  WeightTable weights;
  const artifact::Program emitted = emit_graph_program(program, {.inputs = {"x"}, .outputs = {"y"}}, weights);
  ASSERT_EQ(emitted.memory.arenas.size(), 1u);
  EXPECT_EQ(artifact::to_string(emitted.memory.arenas[0].location), "cuda:1/pinned");
}

TEST(ProgramText, AnotherFormIsRefused) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = kStrided;
    text.replace(text.find(from), from.size(), to);
    return kit::user_error_of([&] { from_module(parse(text)); });
  };
  EXPECT_THAT(error("num_outputs=1", "num_outputs=3"), HasSubstr("no attribute num_outputs"));
  EXPECT_THAT(error("  let %_2 = memory.kill(%s0);\n", "  let %_2 = exp(%x);\n"), HasSubstr("'exp' is bound"));
  EXPECT_THAT(error("  let %u = ", "  let %k = memory.kill(%s0);\n  let %u = "), HasSubstr("after it was killed"));
  EXPECT_THAT(error("memory.kill(%s0)", "memory.kill(%t)"), HasSubstr("something that is not a storage"));
  EXPECT_THAT(error("%2 = (%u,)", "%2 = (exp(%x),)"), HasSubstr("not a parameter, view or constant"));
  EXPECT_THAT(error("strides=[1, 2]", "strides=[1]"), HasSubstr("no tensor has shape [2, 3] and strides [1]"));
  EXPECT_THAT(error("strides=[1, 2]", "strides=[1, 9]"), HasSubstr("do not lie within"));
  EXPECT_THAT(error("size=24", "size=24, location=\"moon\""), HasSubstr("'moon' is not a location"));
}

// ---- VerifyProgram: one test for each rule

TEST(VerifyProgram, NamesEachBreach) {
  const auto breaches = [](const std::function<void(Program&)>& damage) {
    Program program = program_of(fused(kTwoConvolutions));
    plan_memory(program);
    damage(program);
    return fmt::format("{}", fmt::join(find_breaches(program), "; "));
  };
  const auto first_output = [](Program& p) -> View& { return p.views[p.steps[0].outputs[0]]; };
  EXPECT_EQ(breaches([](Program&) {}), "");
  EXPECT_THAT(breaches([&](Program& p) { first_output(p).byte_offset = 4; }), HasSubstr("outside the 128 of its base"));
  EXPECT_THAT(breaches([&](Program& p) { first_output(p).byte_offset = -4; }), HasSubstr("bytes at -4"));
  EXPECT_THAT(breaches([](Program& p) { p.views[p.inputs[1]].byte_offset = 2; }), HasSubstr("begins at byte 2"));
  EXPECT_THAT(breaches([](Program& p) { p.steps[0].inputs.pop_back(); }), HasSubstr("step 0 reads 1 views"));
  EXPECT_THAT(breaches([](Program& p) { std::swap(p.steps[0].inputs[0], p.steps[0].inputs[1]); }),
              HasSubstr("step 0 reads a Tensor[(2, 3, 1, 1), float32] as 0, which is Tensor[(1, 3, 4, 4), float32]"));
  EXPECT_THAT(breaches([](Program& p) { p.bases[p.views[p.steps[0].outputs[0]].base].kind = Base::Kind::input; }),
              HasSubstr("step 0 writes an input or a constant"));
  EXPECT_THAT(breaches([](Program& p) { std::swap(p.steps[0], p.steps[2]); }),
              HasSubstr("step 0 reads bytes that no earlier step wrote"));
  EXPECT_THAT(breaches([](Program& p) { p.steps.pop_back(); }), HasSubstr("output 1 is not written whole"));
  EXPECT_THAT(breaches([](Program& p) { p.steps[2].outputs = {p.steps[2].inputs[0]}; }),
              HasSubstr("step 2 writes memory that it reads"));
  EXPECT_THAT(breaches([](Program& p) { p.bases[p.views[p.steps[1].outputs[0]].base].offset = 64; }),
              HasSubstr("is in use from step 1 on, where another one lies"));
  EXPECT_THAT(breaches([](Program& p) { p.steps[1].function = std::nullopt; }), HasSubstr("step 1 copies between"));
}

// ---- several programs

TEST(ReadProgram, ProgramsShareEqualGroups) {
  GroupTable groups;
  const Program a = read_program(fused("def @main(%x: Tensor[(4), float32]) { exp(%x) }"), groups);
  const Program b = read_program(fused("def @main(%y: Tensor[(4), float32]) { nn.softmax(exp(exp(%y))) }"), groups);
  const Program c = read_program(fused("def @main(%z: Tensor[(4), float32]) { exp(%z) }"), groups);
  EXPECT_EQ(a.functions.at(0).first, c.functions.at(0).first);
  EXPECT_EQ(groups.functions().size(), a.functions.size() + b.functions.size());
}

TEST(ReadProgram, ARegionIsAStepOfItsOwn) {
  const IRModule module = fused(
      "def @region(%a: Tensor[(4), float32], %t: (Tensor[(4), float32], Tensor[(4), float32]), Compiler=\"test\",\n"
      "            global_symbol=\"their_name\", Primitive=1) { (add(%a, %t.0), %t.1) }\n"
      "def @main(%x: Tensor[(4), float32]) {\n"
      "  let %e = exp(%x);\n"
      "  let %r = @region(%x, (%e, %x));\n"
      "  (nn.softmax(%r.0), %r.1)\n"
      "}\n");
  Program program = program_of(module);
  plan_memory(program);
  EXPECT_THAT(find_breaches(program), IsEmpty());
  WeightTable weights;
  const artifact::Program emitted = emit_graph_program(program, {.inputs = {"x"}, .outputs = {"a", "b"}}, weights);
  std::vector<std::string> kinds;
  for (const artifact::Step& step : emitted.graph.steps) kinds.emplace_back(artifact::name_of(step.action));
  EXPECT_THAT(kinds, ElementsAre("kernel", "region", "kernel"));
  EXPECT_EQ(artifact::callee_of(emitted.graph.steps[1].action), "their_name");
  EXPECT_EQ(emitted.graph.steps[1].args.size(), 5u);
  EXPECT_EQ(emitted.graph.steps[1].num_outputs, 2);
  expect_runs_as(module, program, {numbers({4})});
}

}  // namespace
}  // namespace headrace::plan
