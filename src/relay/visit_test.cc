#include "relay/visit.h"

#include <gtest/gtest.h>

namespace headrace::relay {
namespace {

Var x() { return make_var("x", make_scalar_type(DataType::float_(32))); }

// Returns the nodes that a walk visited, one word a node.
std::string order_of(const Expr& root) {
  std::vector<std::string> words;
  post_order(root, [&](const Expr& e) {
    const auto* var = e.as<VarNode>();
    words.push_back(var ? var->name_hint : std::string(e->key()).substr(6));
  });
  return fmt::format("{}", fmt::join(words, " "));
}

TEST(Visit, ChildrenComeFirstInEvaluationOrder) {
  const Var a = make_var("a"), b = make_var("b"), c = make_var("c");
  EXPECT_EQ(order_of(make_let(a, make_tuple({b}), make_tuple({a, c}))), "b Tuple a c Tuple Let");
  EXPECT_EQ(order_of(make_if(a, b, c)), "a b c If");
  EXPECT_EQ(order_of(make_call(make_function({a}, a), {b})), "a Function b Call");
  EXPECT_EQ(order_of(make_ref_write(make_ref_create(a), make_ref_read(b))), "a RefCreate b RefRead RefWrite");
  EXPECT_EQ(
      order_of(make_match(c, {make_clause(make_pattern_tuple({make_pattern_var(a), make_pattern_wildcard()}), b)})),
      "c a b Match");
}

TEST(Visit, AMissingChildIsOurFault) {
  EXPECT_THROW(post_order(make_tuple({x(), Expr()}), [](const Expr&) {}), InternalError);
  EXPECT_THROW(post_order(make_let(make_var("v"), x(), Expr()), [](const Expr&) {}), InternalError);
  const auto same = [](const Expr&, const Expr& after) { return after; };
  EXPECT_THROW(rewrite_post_order(make_call(Expr(), {x()}), same), InternalError);
}

TEST(Visit, TheRootMayChangeMeanwhile) {
  Expr root = make_tuple({make_tuple({x()})});
  int nodes = 0;
  post_order(root, [&](const Expr&) {
    root = x();
    ++nodes;
  });
  EXPECT_EQ(nodes, 3);
}

TEST(Visit, ASharedNodeIsVisitedOnce) {
  const Expr shared = make_tuple({x()});
  EXPECT_EQ(order_of(make_tuple({shared, shared})), "x Tuple Tuple");
}

TEST(Visit, EnterKeepsTheWalkOut) {
  int nodes = 0;
  const Var a = make_var("a");
  post_order(
      make_tuple({make_function({a}, make_tuple({a})), x()}), [](const Expr& e) { return !e.is<FunctionNode>(); },
      [&](const Expr&) { ++nodes; });
  EXPECT_EQ(nodes, 3);
}

TEST(Visit, LongChainsNeedNoStack) {
  Expr chain = x();
  for (int i = 0; i < 100000; ++i) chain = make_tuple({chain});
  int nodes = 0;
  post_order(chain, [&](const Expr&) { ++nodes; });
  EXPECT_EQ(nodes, 100001);
  Expr lets = x();
  for (int i = 0; i < 10000; ++i) lets = make_let(make_var("v"), x(), lets);
  EXPECT_EQ(rewrite_post_order(lets, [](const Expr&, const Expr& after) { return after; }), lets);
}

TEST(Rewrite, TheSamePointerWhenNothingChanged) {
  const Var a = make_var("a");
  const Expr e = make_if(a, make_match(a, {make_clause(make_pattern_var(make_var("p")), a)}),
                         make_call(make_function({a}, make_tuple_get_item(make_tuple({a}), 0)), {a}));
  EXPECT_EQ(rewrite_post_order(e, [](const Expr&, const Expr& after) { return after; }), e);
}

TEST(Rewrite, ReplacesEverywhereAndKeepsSharing) {
  const Var a = make_var("a"), b = make_var("b");
  const Expr shared = make_tuple({a});
  const Expr e = make_tuple({shared, make_ref_create(shared), make_ref_read(shared), make_ref_write(shared, shared)});
  const Expr changed =
      rewrite_post_order(e, [&](const Expr& before, const Expr& after) { return before == Expr(a) ? Expr(b) : after; });
  EXPECT_EQ(order_of(changed), "b Tuple RefCreate RefRead RefWrite Tuple");
  EXPECT_EQ(order_of(e), "a Tuple RefCreate RefRead RefWrite Tuple");
}

// Two functions that are left alone share a node with each other and one with their surroundings.
TEST(Rewrite, NodesThatFunctionsCaptureAreReplaced) {
  const Var a = make_var("a"), b = make_var("b"), p = make_var("p");
  const Expr captured = make_tuple({a}), both = make_tuple({captured, p});
  const Expr body = make_tuple({captured, make_function({p}, both), make_function({p}, make_tuple({both}))});
  const Expr changed = rewrite_post_order(
      body, [](const Expr& e) { return !e.is<FunctionNode>(); },
      [&](const Expr& before, const Expr& after) {
        EXPECT_FALSE(before == both);
        return before == Expr(a) ? Expr(b) : after;
      });
  EXPECT_EQ(order_of(changed), "b Tuple p Tuple Function Tuple Function Tuple");
  EXPECT_EQ(free_vars(changed), std::vector<Var>{b});
}

TEST(Rewrite, BindersFollowTheirVariables) {
  const Var a = make_var("a"), b = make_var("b"), c = make_var("c");
  const auto rename = [&](const Expr& before, const Expr& after) { return before == Expr(a) ? Expr(b) : after; };
  const Expr function = rewrite_post_order(make_function({a}, a), rename);
  EXPECT_EQ(function.as<FunctionNode>()->params[0], b);
  const Expr let = rewrite_post_order(make_let(a, c, a), rename);
  EXPECT_EQ(let.as<LetNode>()->var, b);
  const Expr match = rewrite_post_order(
      make_match(c, {make_clause(make_pattern_tuple({make_pattern_wildcard(), make_pattern_var(a)}), a)}), rename);
  const Clause clause = match.as<MatchNode>()->clauses[0];
  EXPECT_EQ(pattern_vars(clause->lhs), std::vector<Var>{b});
  EXPECT_EQ(clause->rhs, b);
}

TEST(Rewrite, ALetIsInlined) {
  const Var a = make_var("a"), c = make_var("c");
  const Expr value = make_tuple({c});
  const Expr e = make_let(a, value, make_tuple({a, a}));
  const Expr inlined = rewrite_post_order(e, [&](const Expr& before, const Expr& after) {
    if (before == Expr(a)) return value;
    const auto* let = after.as<LetNode>();
    return let ? let->body : after;
  });
  EXPECT_EQ(order_of(inlined), "c Tuple Tuple");
}

TEST(Rewrite, ANullReplacementIsOurFault) {
  EXPECT_THROW(rewrite_post_order(x(), [](const Expr&, const Expr&) { return Expr(); }), InternalError);
  EXPECT_THROW(with_children(make_tuple({x()}), {}), InternalError);
}

TEST(FreeVars, AreThoseBoundOutside) {
  const Var a = make_var("a"), b = make_var("b"), c = make_var("c");
  EXPECT_EQ(free_vars(make_function({a}, make_let(b, c, make_tuple({a, b, c})))), std::vector<Var>{c});
  EXPECT_TRUE(free_vars(make_match(make_tuple({}), {make_clause(make_pattern_var(a), a)})).empty());
}

}  // namespace
}  // namespace headrace::relay
