#include "codegen/captures.h"
#include "kit/dtypes.h"

#include <gtest/gtest.h>

namespace headrace::codegen {
namespace {

using kit::kF32;

TEST(Captures, OnlyWhatTheBodyNames) {
  const PrimVar n = make_prim_var("n"), step = make_prim_var("step"), i = make_prim_var("i"),
                other = make_prim_var("o");
  const Buffer x = make_buffer("x", kF32, {n * 2}), y = make_buffer("y", kF32, to_dims({8}));
  const Buffer unused = make_buffer("unused", kF32, to_dims({8}));
  const tir::Stmt body = tir::make_for(i, make_int(0), make_int(8), tir::ForKind::serial,
                                       tir::make_store(y, make_load(x, {i * step}), {i}));
  const std::unordered_set<const Object*> expected{n.get(), step.get(), i.get(), x.get(), y.get()};
  EXPECT_EQ(objects_in(body), expected);
  EXPECT_FALSE(objects_in(body).contains(unused.get()) || objects_in(body).contains(other.get()));
}

TEST(Captures, EveryStatementIsLookedInto) {
  const Buffer x = make_buffer("x", kF32, to_dims({8})), y = make_buffer("y", kF32, to_dims({8}));
  const PrimVar a = make_prim_var("a"), b = make_prim_var("b"), c = make_prim_var("c");
  const tir::Stmt in_else = tir::make_assert(make_binary(BinaryOp::lt, c, make_int(3)), "c is large");
  const tir::Stmt branch =
      tir::make_if(make_binary(BinaryOp::lt, a, make_int(4)), tir::make_store(y, make_float(1), {b}), in_else);
  const tir::Stmt body = tir::make_allocate(x, tir::Scope::workspace, tir::make_seq({branch}));
  const auto found = objects_in(body);
  for (const Object* object : {static_cast<const Object*>(a.get()), static_cast<const Object*>(b.get()),
                               static_cast<const Object*>(c.get()), static_cast<const Object*>(y.get())})
    EXPECT_TRUE(found.contains(object));
}

}  // namespace
}  // namespace headrace::codegen
