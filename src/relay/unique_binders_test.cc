#include "relay/unique_binders.h"

#include <gtest/gtest.h>

#include "kit/errors.h"
#include "kit/options.h"
#include "ops/all_ops.h"
#include "relay/text/print.h"
#include "relay/verify.h"
#include "relay/visit.h"

namespace headrace::relay {
namespace {

class UniqueBinders : public testing::Test {
 protected:
  void SetUp() override { ops::register_all_ops(); }

  static Expr call(const char* op, std::initializer_list<Expr> args) { return make_call(op, Array<Expr>(args)); }
  // Makes the binders of `expr`, the body of a function of %y, unique and checks that the result is well-formed.
  Expr unique_body(const Expr& expr) const {
    const IRModule before = make_module(make_function({y}, expr)), after = unique_binders(before);
    EXPECT_NE(after, before);
    EXPECT_FALSE(find_breaches(before).empty());
    EXPECT_TRUE(find_breaches(after).empty()) << print_module(after);
    EXPECT_EQ(unique_binders(after), after);
    return after->lookup("main").cast<FunctionNode>()->body;
  }
  std::string text_of(const Expr& expr) const { return print_expr(make_function({y}, unique_body(expr))); }
  std::string error_of(const Function& function) const {
    return kit::user_error_of([&] { unique_binders(make_module(function)); });
  }

  const Type scalar = make_tensor_type(Shape{});
  const Var x = make_var("x", scalar), y = make_var("y", scalar), f = make_var("f"), g = make_var("g");
};

TEST_F(UniqueBinders, AWellFormedModuleStays) {
  const Expr body = make_let(x, y, make_let(f, make_function({}, x), make_call(f, {})));
  const IRModule module = make_module(make_function({y}, body));
  module->add_function(make_global_var("g"), make_function({x, y}, call("add", {x, y})));
  EXPECT_EQ(unique_binders(module), module) << "each function has its own %x";
  const Expr open = make_tuple({x, y});
  EXPECT_EQ(unique_binders(open), open);
}

TEST_F(UniqueBinders, AnInnerBinderHidesTheOuterOne) {
  EXPECT_EQ(text_of(make_let(x, y, make_let(x, call("exp", {x}), make_let(x, call("add", {x, x}), x)))),
            "#[version = \"0.0.5\"]\nfn (%y: float32) {\n  let %x: float32 = %y;\n  let %x_1: float32 = exp(%x);\n"
            "  let %x_2: float32 = add(%x_1, %x_1);\n  %x_2\n}\n");
  // The first is over where the second begins, and the parameter is seen again behind both.
  EXPECT_EQ(
      text_of(make_tuple({make_let(x, y, x), make_let(x, call("exp", {y}), x), make_let(y, call("exp", {y}), y), y})),
      "#[version = \"0.0.5\"]\nfn (%y: float32) {\n  %0 = (\n    let %x: float32 = %y;\n    %x\n  );\n"
      "  %1 = (\n    let %x_1: float32 = exp(%y);\n    %x_1\n  );\n"
      "  %2 = (\n    let %y_1: float32 = exp(%y);\n    %y_1\n  );\n  (%0, %1, %2, %y)\n}\n");
}

TEST_F(UniqueBinders, AFunctionCallsItselfByTheVariableThatItIsBoundTo) {
  const auto endless = [&] { return make_function({y}, make_call(f, {y})); };
  const Expr body = unique_body(make_let(f, endless(), make_let(f, endless(), make_call(f, {y}))));
  const auto* outer = body.as<LetNode>();
  const auto* inner = outer->body.as<LetNode>();
  ASSERT_NE(inner, nullptr);
  EXPECT_NE(outer->var, inner->var);
  EXPECT_EQ(outer->value.as<FunctionNode>()->body.as<CallNode>()->op, Expr(outer->var));
  EXPECT_EQ(inner->value.as<FunctionNode>()->body.as<CallNode>()->op, Expr(inner->var));
  EXPECT_EQ(inner->body.as<CallNode>()->op, Expr(inner->var));
}

TEST_F(UniqueBinders, ClausesBindForThemselves) {
  const auto clause = [&](const Expr& rhs) {
    return make_clause(make_pattern_tuple({make_pattern_var(x), make_pattern_wildcard()}), rhs);
  };
  const Expr body = unique_body(make_match(make_tuple({y, y}), {clause(x), clause(call("exp", {x}))}));
  const Array<Clause> clauses = body.as<MatchNode>()->clauses;
  const Var first = pattern_vars(clauses[0]->lhs)[0], second = pattern_vars(clauses[1]->lhs)[0];
  EXPECT_NE(first, second);
  EXPECT_EQ(clauses[0]->rhs, Expr(first));
  EXPECT_EQ(clauses[1]->rhs.as<CallNode>()->args[0], Expr(second));
}

TEST_F(UniqueBinders, ANodeInTwoScopesBecomesOneForEachMeaning) {
  const Expr own = make_ref_create(y), shared = make_tuple({x, own, make_let(g, x, g)});
  const Expr body =
      unique_body(make_tuple({make_function({x}, shared), make_function({x}, make_tuple({shared, shared}))}));
  const auto* tuple = body.as<TupleNode>();
  const auto* first = tuple->items[0].as<FunctionNode>();
  const auto* second = tuple->items[1].as<FunctionNode>();
  EXPECT_EQ(first->params[0], x) << "the first keeps its variable";
  EXPECT_EQ(first->body, shared);
  EXPECT_NE(second->params[0], x);
  const auto* pair = second->body.as<TupleNode>();
  EXPECT_EQ(pair->items[0], pair->items[1]) << "it means one thing here";
  const auto* copy = pair->items[0].as<TupleNode>();
  EXPECT_EQ(copy->items[0], Expr(second->params[0]));
  EXPECT_EQ(copy->items[1], own) << "what both create is one reference";
  EXPECT_NE(copy->items[2].as<LetNode>()->var, g);
}

TEST_F(UniqueBinders, OneFunctionInTwoPlacesStaysOne) {
  const Expr literal = make_function({x}, x);
  const IRModule once = make_module(make_function({y}, make_tuple({literal, literal})));
  EXPECT_EQ(unique_binders(once), once);
  const Expr lets = unique_body(make_let(x, literal, make_let(x, y, make_tuple({literal, x}))));
  EXPECT_EQ(lets.as<LetNode>()->value, lets.as<LetNode>()->body.as<LetNode>()->body.as<TupleNode>()->items[0]);
}

TEST_F(UniqueBinders, FreeVariablesOfAnExpressionStay) {
  const Expr after = unique_binders(make_tuple({make_let(x, y, x), x, make_function({x}, x)}));
  const auto* tuple = after.as<TupleNode>();
  EXPECT_EQ(tuple->items[1], Expr(x));
  EXPECT_NE(tuple->items[0].as<LetNode>()->var, x);
  EXPECT_EQ(tuple->items[0].as<LetNode>()->body, Expr(tuple->items[0].as<LetNode>()->var));
  EXPECT_NE(tuple->items[2].as<FunctionNode>()->params[0], x);
  EXPECT_EQ(free_vars(after).size(), 2u);
}

TEST_F(UniqueBinders, UnboundVariablesAreReported) {
  const std::string outside = ", which is not a parameter of it and bound by no let or pattern around it";
  EXPECT_EQ(error_of(make_function({y}, x)), "@main uses %x" + outside);
  EXPECT_EQ(error_of(make_function({y}, make_tuple({make_let(x, y, x), x}))), "@main uses %x" + outside);
  EXPECT_EQ(error_of(make_function({y}, make_let(x, x, make_let(y, y, y)))), "@main uses %x" + outside);
  // In a node that the binder's scope has, too.
  const Expr shared = call("exp", {x});
  EXPECT_EQ(error_of(make_function({y}, make_tuple({make_let(x, y, make_let(x, y, shared)), shared}))),
            "@main uses %x" + outside);
  const std::string twice = " is twice in the parameters of a function or in a pattern";
  EXPECT_EQ(error_of(make_function({x, x}, x)), "variable '%x'" + twice);
  const Pattern pair = make_pattern_tuple({make_pattern_var(x), make_pattern_var(x)});
  EXPECT_EQ(error_of(make_function({y}, make_match(make_tuple({y, y}), {make_clause(pair, x)}))),
            "variable '%x'" + twice);
}

// Each level has two meanings of the one below: 2^60 nodes.
TEST_F(UniqueBinders, StopsBeforeTheProgramExplodes) {
  Expr level = x;
  for (int i = 0; i < 60; ++i)
    level = make_tuple({make_let(x, call("exp", {x}), level), make_let(x, call("negative", {x}), level)});
  EXPECT_TRUE(error_of(make_function({x}, level)).starts_with("variables are bound in so many places"));
}

TEST_F(UniqueBinders, LongChainsAreLinearAndNeedNoStack) {
  const int length = kit::by_depth(20000);
  Expr lets = x, functions = x;
  for (int i = 0; i < length; ++i) lets = make_let(x, call("exp", {x}), lets);
  for (int i = 0; i < length; ++i) functions = make_call(make_function({x}, functions), {x});
  unique_body(make_let(x, y, lets));
  unique_body(make_let(x, y, functions));
  // Many variables that are alive to the end, each bound in two branches.
  std::vector<Var> vars;
  for (int i = 0; i < length; ++i) vars.push_back(make_var("v", scalar));
  const auto branch = [&] {
    Expr body = make_tuple(Array<Expr>(vars.begin(), vars.end()));
    for (const Var& var : vars) body = make_let(var, y, body);
    return body;
  };
  unique_body(make_if(call("less", {y, y}), branch(), branch()));
}

}  // namespace
}  // namespace headrace::relay
