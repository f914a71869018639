// The compute form: its rules, its nodes, its plain loops.
#include "tir/compute_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interp/tir_interp.h"
#include "kit/dtypes.h"
#include "kit/errors.h"
#include "kit/float_buffer.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "tir/plain_loops.h"
#include "tir/print.h"
#include "tir/verify_compute.h"

namespace headrace::tir {
namespace {

using kit::kF32;
using kit::kI32;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> elements_of(const NDArray& array) {
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

// t[i] = x[i] + 1;  y[] = 2 * (sum over k of t[k])
struct Example {
  Buffer x = kit::float_buffer("x", {3}), t = kit::float_buffer("t", {3}), y = kit::float_buffer("y", {});
  PrimVar i = make_prim_var("i"), k = make_prim_var("k"), total = make_prim_var("total", kF32);
  Compute compute;
  Example() {
    ComputeStage first;
    first.output = t;
    first.axes = {i};
    first.value = make_load(x, {i}) + 1;
    ComputeStage second;
    second.output = y;
    second.reduce_axes = {k};
    second.reduce_extents = {make_int(3)};
    second.combiner = Combiner::sum;
    second.init = make_float(0);
    second.value = make_load(t, {k});
    second.reduced = total;
    second.epilogue = total * 2;
    compute = {{x}, {first, second}, {y}};
  }
};

TEST(ComputeForm, PlainLoopsSayWhatItMeans) {
  const Example e;
  const PrimFunc loops = plain_loops(e.compute, "f");
  EXPECT_EQ(print_function(loops), R"(#[tir_version = "1"]

prim_func @f(x: Buffer[(3), float32]) -> (y: Buffer[(), float32]) {
  allocate t: Buffer[(3), float32] in workspace;
  for i in serial(3) {
    t[i] = x[i] + 1f;
  }
  allocate total: Buffer[(1), float32] in registers;
  total[0] = 0f;
  for k in serial(3) {
    total[0] = total[0] + t[k];
  }
  let total_1: float32 = total[0];
  y[] = total_1 * 2f;
}
)");
  const auto y = interp::run_prim_func(loops, {NDArray::from_vector({3}, kF32, std::vector<float>{1, 2, 4})});
  EXPECT_THAT(elements_of(y[0]), ElementsAre(20));
}

TEST(ComputeForm, PartsAndChecksHaveLoopsToo) {
  const Buffer x = kit::float_buffer("x", {2}), y = kit::float_buffer("y", {4});
  const PrimVar i = make_prim_var("i"), j = make_prim_var("j"), c = make_prim_var("c");
  ComputeStage check;
  check.axes = {c};
  check.extents = {make_int(2)};
  check.value = make_binary(BinaryOp::gt, make_load(x, {c}), make_float(0));
  check.message = "x is not positive";
  ComputeStage low, high;
  low.output = high.output = y;
  low.axes = {i};
  low.place = {i};
  low.extents = high.extents = {make_int(2)};
  low.value = make_load(x, {i});
  high.axes = {j};
  high.place = {j + 2};
  high.value = make_load(x, {make_int(1) - j});
  const Compute compute{{x}, {check, low, high}, {y}};
  const auto run = [&](const std::vector<float>& in) {
    return interp::run_prim_func(plain_loops(compute, "f"), {NDArray::from_vector({2}, kF32, in)});
  };
  EXPECT_THAT(elements_of(run({5, 7})[0]), ElementsAre(5, 7, 7, 5));
  EXPECT_THAT(kit::user_error_of([&] { run({5, -7}); }), HasSubstr("x is not positive"));
}

TEST(ComputeForm, NodesKeepTheForm) {
  const Example e;
  const ComputeForm form = from_compute(e.compute);
  const ComputeForm again = load_json(save_json(Value(form))).as<ComputeForm>();
  EXPECT_TRUE(structural_equal(Value(form), Value(again)));
  EXPECT_EQ(structural_hash(Value(form)), structural_hash(Value(again)));
  EXPECT_EQ(print_function(plain_loops(to_compute(again), "f")), print_function(plain_loops(e.compute, "f")));
  Compute other = Example().compute;
  EXPECT_TRUE(structural_equal(Value(form), Value(from_compute(other)))) << "names of variables do not count";
  other.stages[1].combiner = Combiner::max;
  EXPECT_FALSE(structural_equal(Value(form), Value(from_compute(other))));
}

TEST(ComputeForm, StagesAndCallsShareNoVariables) {
  Example e;
  e.compute.stages[1].reduce_axes = {e.i};
  e.compute.stages[1].value = make_load(e.t, {e.i});
  const ComputeForm form = from_compute(e.compute);
  const Compute a = to_compute(form), b = to_compute(form);
  EXPECT_NE(a.stages[0].axes[0], a.stages[1].reduce_axes[0]);
  EXPECT_NE(a.stages[0].axes[0], b.stages[0].axes[0]);
  EXPECT_NE(a.stages[1].reduced, b.stages[1].reduced);
  EXPECT_EQ(a.stages[0].axes[0]->name_hint, "i");
  const auto y =
      interp::run_prim_func(plain_loops(a, "f"), {NDArray::from_vector({3}, kF32, std::vector<float>{1, 2, 4})});
  EXPECT_THAT(elements_of(y[0]), ElementsAre(20));
}

// The rule that `change` breaks.
std::string breach_of(const std::function<void(Example&)>& change) {
  Example e;
  change(e);
  return find_breach(e.compute).value_or("");
}

TEST(ComputeForm, KeepsItsRules) {
  EXPECT_EQ(breach_of([](Example&) {}), "");
  const auto first = [](Example& e) -> ComputeStage& { return e.compute.stages[0]; };
  const auto second = [](Example& e) -> ComputeStage& { return e.compute.stages[1]; };
  const std::vector<std::pair<std::function<void(Example&)>, std::string>> cases{
      {[](Example& e) { e.compute.inputs.push_back({}); }, "an input is null"},
      {[](Example& e) { e.compute.inputs.push_back(e.x); }, "the buffer 'x' is two inputs"},
      {[](Example& e) { e.compute.inputs.push_back(make_buffer("s", kF32, to_dims({2}), to_dims({2}))); },
       "the buffer 's' has strides; all are dense here"},
      {[](Example& e) { e.compute.inputs.push_back(make_buffer("s", kF32, {PrimExpr()})); },
       "a dimension of the buffer 's' is null"},
      {[](Example& e) { e.compute.outputs.push_back(e.x); }, "no stage computes the output 'x'"},
      {[](Example& e) { e.compute.outputs.push_back(e.y); }, "the buffer 'y' is two outputs"},
      {[&](Example& e) { first(e).output = {}; }, "the output of a stage is null"},
      {[&](Example& e) { first(e).value = {}; }, "'t' has no value"},
      {[&](Example& e) { first(e).message = "m"; }, "the check \"m\" has an output, or a value that is not a bool"},
      {[&](Example& e) { first(e).axes.clear(); }, "'t' has 0 axes and 1 extents"},
      {[&](Example& e) { first(e).axes[0] = {}; }, "an axis of 't' is null"},
      {[&](Example& e) { first(e).axes[0] = make_prim_var("i", kI32); },
       "the axis 'i' of 't' is int32; axes are int64"},
      {[&](Example& e) { first(e).extents = {make_int(3, kI32)}; },
       "the extent of 'i' in 't' is int32; extents are int64"},
      {[&](Example& e) { first(e).place = {e.i, e.i}; }, "'t' has 1 dimensions and is written at 2 indices"},
      {[&](Example& e) { first(e).place = {make_float(0)}; }, "an index that 't' is written at is not int64"},
      {[&](Example& e) { first(e).value = make_int(1); }, "'t' holds float32 and gets a value of int64; write .astype"},
      {[&](Example& e) { second(e).combiner = static_cast<Combiner>(9); }, "'y' has an unknown combiner"},
      {[&](Example& e) { second(e).combiner = Combiner::none; }, "'y' has parts of a reduction and no combiner"},
      {[&](Example& e) { second(e).reduce_extents.clear(); }, "'y' has 1 axes and 0 extents"},
      {[&](Example& e) { second(e).init = {}; }, "the reduction of 'y' does not start from a constant of float32"},
      {[&](Example& e) { second(e).init = make_float(1); },
       "the reduction of 'y' starts from 1; a sum starts from 0 and a product from 1"},
      {[&](Example& e) { second(e).value = make_prim_var("p", DataType::handle()); }, "'y' combines no numbers"},
      {[&](Example& e) {
         second(e).output = {};
         second(e).message = "m";
         second(e).value = make_bool(true);
       },
       "the check \"m\" is reduced"},
      {[&](Example& e) {
         auto load = make_object<BufferLoadNode>();
         load->dtype = kF32;
         first(e).value = load;
       },
       "'t' reads a null buffer"},
      {[&](Example& e) { second(e).reduced = {}; },
       "the epilogue of 'y' has no variable of float32 for what is combined"},
      {[&](Example& e) { first(e).value = make_load(e.t, {e.i}); }, "'t' reads itself"},
      {[&](Example& e) { first(e).value = make_load(kit::float_buffer("z", {3}), {e.i}); },
       "'t' reads 'z', which is not input and which no earlier stage computes"},
      {[](Example& e) { std::swap(e.compute.stages[0], e.compute.stages[1]); },
       "'y' reads 't', which is not input and which no earlier stage computes"},
      {[&](Example& e) { first(e).value = make_intrinsic(Intrinsic::reduce_add, kF32, {make_broadcast(e.total, 4)}); },
       "'t' computes with `broadcast(total, 4)`, which is float32x4; values are scalars"},
      {[](Example& e) { e.compute.stages.push_back(e.compute.stages[0]); }, "'t' is computed twice"},
      {[&](Example& e) {
         first(e).value = make_float(1);
         first(e).output = e.x;
       },
       "'x' is an input, which a stage writes"},
      {[&](Example& e) { second(e).reduce_extents = {make_prim_var("n")}; },
       "'n' is in the shape or the extents of 'y', and is a dimension of no input and no output"},
      {[&](Example& e) { first(e).value = make_load(e.x, {e.k}); }, "the variable 'k' is not in scope"},
  };
  for (const auto& [change, rule] : cases) EXPECT_THAT(breach_of(change), HasSubstr(rule));
}

TEST(ComputeForm, MalformedFormsAreErrors) {
  const Example e;
  const ComputeForm form = from_compute(e.compute);
  auto broken = make_object<ComputeNode>(*form);
  broken->outputs = {e.x};
  EXPECT_EQ(kit::user_error_of([&] { to_compute(broken); }),
            "the compute form is not well-formed: no stage computes the output 'x'");
  broken->stages = {Ref<ComputeStageNode>()};
  EXPECT_EQ(kit::user_error_of([&] { to_compute(broken); }), "a stage of the compute form is null");
}

TEST(ComputeForm, ABufferInBetweenHasAConstantShape) {
  Example e;
  const PrimVar n = make_prim_var("n");
  const Buffer x = make_buffer("x", kF32, {n}), t = make_buffer("t", kF32, {n});
  e.compute.inputs = {x};
  e.compute.stages[0].output = t;
  e.compute.stages[0].value = make_load(x, {e.i});
  e.compute.stages[1].value = make_load(t, {e.k});
  EXPECT_EQ(find_breach(e.compute), std::nullopt);
  EXPECT_EQ(kit::user_error_of([&] { plain_loops(e.compute, "f"); }),
            "'t' is kept between two stages and has a symbolic shape: only outputs may");
}

}  // namespace
}  // namespace headrace::tir
