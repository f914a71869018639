#include "ir/module.h"

#include <gtest/gtest.h>

#include "relay/expr.h"

namespace headrace {
namespace {

BaseFunc some_function() { return relay::make_function({}, relay::make_tuple({})); }

TEST(Module, FunctionsAreFoundByName) {
  const IRModule module = make_module();
  const GlobalVar f = module->add_function(make_global_var("f"), some_function());
  EXPECT_EQ(module->find_global_var("f"), f);
  EXPECT_FALSE(module->find_global_var("g"));
  const GlobalVar g = module->add_function(make_global_var("g"), some_function());
  EXPECT_EQ(module->find_global_var("g"), g);
  EXPECT_EQ(module->add_function(make_global_var("f"), some_function(), true), f) << "the name keeps its variable";
  EXPECT_EQ(module->functions.size(), 2u);
}

// As one that comes from JSON.
TEST(Module, MadeOfItsFieldsFindsFunctionsAndTakesMore) {
  const GlobalVar f = make_global_var("f"), g = make_global_var("g");
  const auto made = make_node("ir.IRModule", {{"functions", Value(Map<GlobalVar, BaseFunc>{{f, some_function()}})},
                                              {"type_definitions", Value(Map<GlobalTypeVar, TypeData>())},
                                              {"attrs", Value(DictAttrs())}});
  const IRModule module = made.cast<IRModuleNode>();
  EXPECT_EQ(module->find_global_var("f"), f);
  EXPECT_FALSE(module->find_global_var("g"));
  module->add_function(g, some_function());
  EXPECT_EQ(module->find_global_var("f"), f);
  EXPECT_EQ(module->find_global_var("g"), g);
  EXPECT_THROW(module->add_function(make_global_var("f"), some_function()), UserError);
}

}  // namespace
}  // namespace headrace
