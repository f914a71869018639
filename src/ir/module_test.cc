#include "ir/module.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kit/errors.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "relay/expr.h"
#include "relay/infer/infer_type.h"
#include "relay/text/print.h"

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
  EXPECT_EQ(module->functions().size(), 2u);
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

TypeData some_type(const std::string& name) {
  auto constructor = make_object<ConstructorNode>();
  constructor->name_hint = "Make" + name;
  auto data = make_object<TypeDataNode>();
  data->header = make_global_type_var(name);
  constructor->belong_to = data->header;
  data->constructors = {constructor};
  return data;
}

TEST(Module, TypesAreFoundByName) {
  const IRModule module = make_module();
  module->add_type_def(some_type("A"));
  module->add_type_def(some_type("B"));
  EXPECT_EQ(module->find_global_type_var("B")->name_hint, "B");
  EXPECT_FALSE(module->find_global_type_var("C"));
  EXPECT_THROW(module->add_type_def(some_type("A")), UserError);
  const TypeData again = some_type("A");
  module->add_type_def(again, true);
  EXPECT_EQ(module->type_definitions().size(), 2u);
  EXPECT_EQ(module->type_definitions().at(module->find_global_type_var("A")), again);
}

IRModule module_of(const std::string& source, const std::string& name, const BaseFunc& function) {
  const IRModule module = make_module();
  module->add_function(make_global_var(name), function);
  module->add_source(make_source(source, "the text of " + source));
  return module;
}

BaseFunc placed(BaseFunc function, const std::string& source, int64_t line) {
  function->span = make_span(source, line, 1);
  return function;
}

// Gives its one item, an integer.
BaseFunc giving(int value) { return relay::make_function({}, relay::make_scalar(value)); }

TEST(Module, ImportsTakeWhatIsNewAndKeepWhatIsEqual) {
  const IRModule module = module_of("mine", "f", giving(1)), other = module_of("theirs", "f", giving(1));
  const BaseFunc mine = module->lookup("f");
  other->add_function(make_global_var("g"), giving(2));
  module->add_type_def(some_type("A"));
  other->add_type_def(some_type("A"));
  other->add_type_def(some_type("B"));
  module->import_from(*other);
  EXPECT_EQ(module->lookup("f"), mine);
  EXPECT_EQ(module->lookup("g"), other->lookup("g"));
  EXPECT_EQ(module->type_definitions().size(), 2u);
  EXPECT_EQ(module->source_map().size(), 2u);
}

TEST(Module, ImportsThatClashTakeNothing) {
  const IRModule module = module_of("mine", "f", placed(giving(1), "mine", 7));
  const IRModule other = module_of("theirs", "new", giving(1));
  other->add_function(make_global_var("f"), placed(giving(2), "theirs", 8));
  EXPECT_EQ(kit::user_error_of([&] { module->import_from(*other); }),
            "the module has already, with another definition than what is imported: the function '@f' (mine:7:1; the "
            "import's is at theirs:8:1); rename one of them");
  EXPECT_EQ(module->functions().size(), 1u);
  EXPECT_EQ(module->source_map().size(), 1u);
}

// An imported definition stays the same one when a pass has changed it: it comes from the same place of the same text.
TEST(Module, ImportsOfTheSamePlaceOfTheSameTextAreTheSame) {
  const IRModule module = module_of("lib", "f", placed(giving(1), "lib", 7));
  EXPECT_NO_THROW(module->import_from(*module_of("lib", "f", placed(giving(2), "lib", 7))));
  EXPECT_THROW(module->import_from(*module_of("lib", "f", placed(giving(2), "lib", 8))), UserError);
  const IRModule edited = module_of("lib", "f", placed(giving(2), "lib", 7));
  edited->add_source(make_source("lib", "another text"));
  EXPECT_THROW(module->import_from(*edited), UserError);
}

TEST(Module, SourcesAreSavedAndCompareEqual) {
  const IRModule module = module_of("mine", "f", giving(1)), other = module_of("theirs", "f", giving(1));
  EXPECT_TRUE(structural_equal(Value(module), Value(other)));
  EXPECT_EQ(structural_hash(Value(module)), structural_hash(Value(other)));
  const IRModule loaded = load_json(save_json(Value(module))).as<IRModule>();
  EXPECT_EQ(loaded->source_map().at("mine")->source, "the text of mine");
}

TEST(Module, CopiesOfTheFunctionsStay) {
  const IRModule module = make_module(some_function());
  const BaseFunc first = module->lookup("main");
  const Map<GlobalVar, BaseFunc> taken = module->functions();
  const IRModule same = snapshot(module);
  module->add_function(make_global_var("g"), some_function());
  module->add_function(make_global_var("main"), some_function(), true);
  EXPECT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken.at(module->get_global_var("main")), first);
  EXPECT_EQ(same->lookup("main"), first);
  EXPECT_FALSE(same->find_global_var("g"));
  same->add_function(make_global_var("h"), some_function());
  EXPECT_FALSE(module->find_global_var("h"));
}

// Otherwise making a module of n functions would copy its table n times.
TEST(Module, ATableThatNobodyTookIsNotCopied) {
  const IRModule module = make_module(some_function());
  const Object* table = module->functions().object().get();
  for (int i = 0; i < 100; ++i) module->add_function(make_global_var(fmt::format("f{}", i)), some_function());
  EXPECT_EQ(module->functions().object().get(), table);
}

// JSON may contain two; all readers get the first.
TEST(Module, OfTwoFunctionsOfOneNameTheFirstIsFound) {
  const GlobalVar first = make_global_var("f"), second = make_global_var("f");
  const IRModule module = make_module();
  module->set_functions({{first, some_function()}, {second, some_function()}});
  EXPECT_EQ(module->find_global_var("f"), first);
  module->add_function(make_global_var("g"), some_function());
  EXPECT_EQ(module->find_global_var("f"), first);
}

// One thread adds to a module while others read it; a sanitizer reports unlocked sharing.
TEST(Module, IsReadWhileItGrows) {
  const IRModule module = make_module(some_function());
  std::atomic<bool> is_done = false;
  std::vector<std::thread> readers;
  const auto reader = [&](auto read) {
    readers.emplace_back([&is_done, read] {
      do read();
      while (!is_done);
    });
  };
  reader([&] {
    const IRModule typed = relay::infer_type(module);
    if (typed == module) return;  // it was typed, and may have grown since
    for (const auto& [var, function] : typed->functions()) ASSERT_TRUE(function->has_checked_type());
  });
  reader([&] { EXPECT_NE(relay::print_module(module).find("@main"), std::string::npos); });
  reader([&] { structural_hash(Value(module)); });
  reader([&] {
    const IRModule same = snapshot(module);
    EXPECT_TRUE(structural_equal(Value(same), Value(snapshot(same))));
    EXPECT_TRUE(load_json(save_json(Value(same))).as<IRModule>()->find_global_var("main"));
  });
  reader([&] {
    EXPECT_TRUE(module->lookup("main"));
    EXPECT_FALSE(module->find_global_type_var("none"));
  });
  for (int i = 0; i < 200; ++i) {
    module->add_function(make_global_var(fmt::format("f{}", i)), some_function());
    module->add_function(make_global_var("f0"), some_function(), true);
    module->add_type_def(some_type(fmt::format("T{}", i)));
  }
  is_done = true;
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(module->functions().size(), 201u);
}

}  // namespace
}  // namespace headrace
