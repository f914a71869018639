#include "lower/loops/fit_machine.h"

#include <gtest/gtest.h>

#include "lower/kernel_rule.h"
#include "object/structural_equal.h"

namespace headrace::lower {
namespace {

using tir::ForKind;

// Rules do not see the machine, so they cannot choose threads by it.
template <typename T>
constexpr bool kHasMachine = requires(T input) { input.machine; };
static_assert(!kHasMachine<KernelInput>);

// Two loops one after the other, each parallel.
struct TwoLoops {
  Buffer buffer = make_buffer("y", DataType::float_(32), {make_int(8)});
  PrimVar first = make_prim_var("i"), second = make_prim_var("j");
  tir::Stmt loop(const PrimVar& var) const {
    const tir::Stmt store = tir::make_store(buffer, make_float(0, DataType::float_(32)), {var});
    return tir::make_for(var, make_int(0), make_int(8), ForKind::parallel, store);
  }
  tir::Stmt body = tir::make_seq({loop(first), loop(second)});
};

std::vector<ForKind> kinds_of(const tir::Stmt& body) {
  std::vector<ForKind> kinds;
  for (const tir::Stmt& item : body.as<tir::SeqNode>()->items) kinds.push_back(item.as<tir::ForNode>()->kind);
  return kinds;
}

TEST(FitMachine, LoopsOfLittleWorkAreSerial) {
  const TwoLoops loops;
  const cost::Machine machine{.min_kernel_work = 1000};
  const LoopWork work{{loops.first.get(), 999}, {loops.second.get(), 1000}};
  EXPECT_EQ(kinds_of(fit_machine(loops.body, work, machine)),
            (std::vector<ForKind>{ForKind::serial, ForKind::parallel}));
  EXPECT_EQ(fit_machine(loops.body, work, {.min_kernel_work = 999}), loops.body) << "nothing changes";
}

TEST(FitMachine, LoopsWithoutANoteStay) {
  const TwoLoops loops;
  EXPECT_EQ(fit_machine(loops.body, {}, {.min_kernel_work = INT64_MAX}), loops.body);
}

// fma is one instruction or two operations; without it the C library would compute it, which takes a hundred times as
// long.
TEST(FitMachine, MultiplyAddsFollowTheMachine) {
  const DataType f32 = DataType::float_(32);
  const Buffer buffer = make_buffer("y", f32, {make_int(1)});
  const PrimVar a = make_prim_var("a", f32), b = make_prim_var("b", f32), c = make_prim_var("c", f32);
  const auto store = [&](const PrimExpr& value) { return tir::make_store(buffer, value, {make_int(0)}); };
  const tir::Stmt body = store(make_intrinsic(Intrinsic::fma, f32, {a, b, c}));
  EXPECT_EQ(fit_machine(body, {}, {.has_fma = true}), body);
  const tir::Stmt fitted = fit_machine(body, {}, {.has_fma = false});
  EXPECT_TRUE(structural_equal(fitted.as<tir::BufferStoreNode>()->value, a * b + c));
}

// Each loop that a rule makes parallel has a note, except for one iteration, which is not a loop.
TEST(FitMachine, RulesNoteTheWorkOfTheirLoops) {
  LoopWork work;
  const auto call = make_object<relay::CallNode>();
  const RuleInput op{*call, {}, {}, {}};
  const KernelInput input{op, work, {}, {}};
  const TwoLoops loops;
  const auto store = [&](const PrimExpr& i) {
    return tir::make_store(loops.buffer, make_float(0, DataType::float_(32)), {i});
  };
  EXPECT_FALSE(each_parallel(input, 1, 50, store).is<tir::ForNode>());
  EXPECT_TRUE(work.empty());
  const tir::Stmt loop = each_parallel(input, 8, 50, store);
  EXPECT_EQ(loop.as<tir::ForNode>()->kind, ForKind::parallel);
  EXPECT_EQ(work.at(loop.as<tir::ForNode>()->var.get()), 50);
}

}  // namespace
}  // namespace headrace::lower
