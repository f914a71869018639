#include <gtest/gtest.h>

#include "ir/prim_expr.h"

namespace headrace {
namespace {

TEST(Substitute, ReplacesEveryVariableThatHasAValue) {
  const PrimVar n = make_prim_var("n"), m = make_prim_var("m");
  const PrimExpr e = PrimExpr(n) * 2 + m;
  EXPECT_EQ(to_string(substitute(e, {{n.get(), make_int(3)}})), to_string(make_int(6) + m));
  EXPECT_EQ(substitute(e, {}), e);
  EXPECT_EQ(substitute(e, {{make_prim_var("n").get(), make_int(3)}}), e);
  EXPECT_EQ(substitute(PrimExpr(n), {{n.get(), m}}), PrimExpr(m));
}

TEST(Substitute, AnyDepthNeedsNoStack) {
  const PrimVar n = make_prim_var("n"), m = make_prim_var("m"), k = make_prim_var("k");
  PrimExpr e = n;
  for (int i = 0; i < 300'000; ++i) e = make_binary(BinaryOp::sub, m, e);
  PrimExpr found = substitute(e, {{n.get(), k}});
  while (!found.is<PrimVarNode>()) found = found.as<BinaryNode>()->b;
  EXPECT_EQ(found, PrimExpr(k));
}

// Written out as a tree it would have 2^200 nodes.
TEST(Substitute, SharedPartsStayShared) {
  const PrimVar n = make_prim_var("n"), m = make_prim_var("m");
  PrimExpr e = n;
  for (int i = 0; i < 200; ++i) e = make_binary(BinaryOp::mul, e, e);
  const PrimExpr found = substitute(e, {{n.get(), m}});
  const auto* top = found.as<BinaryNode>();
  ASSERT_NE(top, nullptr);
  EXPECT_EQ(top->a, top->b);
  EXPECT_NE(found, e);
}

}  // namespace
}  // namespace headrace
