#include "pass/pass_objects.h"

#include <gtest/gtest.h>

#include <thread>

#include "kit/errors.h"
#include "object/structural_equal.h"
#include "pass/config.h"
#include "pass/known_passes.h"

namespace headrace::pass {
namespace {

using Log = std::vector<std::string>;

PassRef logging_object(Log& log, std::string name, int32_t level = 0, std::vector<std::string> required = {}) {
  return make_pass({{name, level, std::move(required)}, [&log, name](const IRModule& module, const PassContext&) {
                      log.push_back(name);
                      return module;
                    }});
}

// Makes an instrument that logs its calls under its name and throws at `fails_at`.
PassInstrumentRef logging_instrument(Log& log, const std::string& name, const std::string& fails_at = "") {
  const auto hook = [&log, name, fails_at](const std::string& event) {
    log.push_back(name + " " + event);
    if (event == fails_at) throw UserError("hook " + event);
  };
  PassInstrumentRef instrument = make_object<PassInstrumentObj>();
  instrument->name = name;
  instrument->enter_pass_ctx = make_packed([hook] { hook("enter"); });
  instrument->exit_pass_ctx = make_packed([hook] { hook("exit"); });
  instrument->run_before_pass = PackedFunc([hook](Args) { return hook("before"), Value(); });
  return instrument;
}

PassContextRef context_with(std::vector<PassInstrumentRef> instruments, int64_t level = 2) {
  PassContextRef context = make_object<PassContextObj>();
  context->opt_level = level;
  context->instruments = Array<PassInstrumentRef>(instruments);
  return context;
}

TEST(PassInfo, ObjectAndStructTellTheSame) {
  PassInfo info{.name = "TestTold", .opt_level = 2, .required = {"A"}, .summary = "what", .aliases = {"B"}};
  info.options = {config_key<int64_t>("depth", "how deep", "3")};
  info.runs_after = {"C"};
  info.undoes = {"D"};
  info.traceable = false;
  const auto object = make_pass_info(info);
  EXPECT_TRUE(structural_equal(Value(make_pass_info(to_info(*object))), Value(object)));
  EXPECT_EQ(to_info(*object).options.at(0).name, "depth");
}

TEST(PassScope, IsOfItsThreadAndNests) {
  EXPECT_FALSE(is_in_context());
  EXPECT_EQ(current_context()->opt_level, 2);
  {
    const With outer(context_with({}, 3));
    {
      const With inner(context_with({}, 1));
      EXPECT_EQ(current_context()->opt_level, 1);
    }
    EXPECT_EQ(current_context()->opt_level, 3);
    std::thread([] { EXPECT_FALSE(is_in_context()); }).join();
  }
  EXPECT_FALSE(is_in_context());
  EXPECT_THROW(exit_context(context_with({})), UserError);
}

// A generator may hold one open, and close it within another.
TEST(PassScope, ScopesEndInAnyOrder) {
  const auto first = context_with({}, 4), second = context_with({}, 1);
  enter_context(first);
  enter_context(second);
  exit_context(first);
  EXPECT_EQ(current_context()->opt_level, 1);
  EXPECT_THROW(exit_context(first), UserError);
  exit_context(second);
  EXPECT_FALSE(is_in_context());
}

TEST(PassScope, InstrumentsAreReplacedAndErrorsLeaveNone) {
  Log log;
  const With outer(context_with({}, 4));
  const auto context = context_with({logging_instrument(log, "a")}, 1);
  const With inner(context);
  override_instruments(context, {logging_instrument(log, "b")});
  EXPECT_EQ(log, (Log{"a enter", "a exit", "b enter"}));
  EXPECT_THROW(override_instruments(current_context(), {logging_instrument(log, "c", "enter")}), UserError);
  EXPECT_EQ(log, (Log{"a enter", "a exit", "b enter", "b exit", "c enter"}));
  EXPECT_EQ(current_context()->opt_level, 1);
  EXPECT_TRUE(current_context()->instruments.empty());
  EXPECT_THROW(override_instruments(context_with({}), {}), UserError);
}

// One instrument has the scope leave the other, amid a pass.
TEST(PassScope, InstrumentsThatLeftAreNotCalled) {
  Log log;
  const auto heard = logging_instrument(log, "heard");
  PassInstrumentRef changer = make_object<PassInstrumentObj>();
  changer->name = "changer";
  changer->run_before_pass = make_packed(
      [&](const Value&, const Value&) { override_instruments(current_context(), {logging_instrument(log, "next")}); });
  const With scope(context_with({changer, heard}));
  const IRModule module = make_module();
  run_passes({{{.name = "Nothing"}, [](const IRModule& m, const PassContext&) { return m; }}}, module,
             to_context(current_context()));
  EXPECT_EQ(log, (Log{"heard enter", "heard exit", "next enter"}));
}

TEST(PassScope, AThreadHasInstrumentsOutsideOfScopes) {
  Log log;
  override_instruments(current_context(), {logging_instrument(log, "a")});
  EXPECT_EQ(current_context()->instruments.size(), 1u);
  {
    const With inner(context_with({}));
    EXPECT_TRUE(current_context()->instruments.empty()) << "a scope has its own";
  }
  std::thread([] { EXPECT_TRUE(current_context()->instruments.empty()); }).join();
  override_instruments(current_context(), {});
  EXPECT_EQ(log, (Log{"a enter", "a exit"}));
  EXPECT_TRUE(current_context()->instruments.empty());
  EXPECT_EQ(kit::user_error_of([] { override_instruments(context_with({}), {}); }),
            "override_instruments: this is not the context that passes run in now; write "
            "PassContext.current().override_instruments([...])");
}

TEST(PassScope, AnInstrumentThatCannotEnterLeavesTheOthers) {
  Log log;
  const auto context = context_with({logging_instrument(log, "a"), logging_instrument(log, "b", "enter")});
  EXPECT_THROW(enter_context(context), UserError);
  EXPECT_EQ(log, (Log{"a enter", "b enter", "a exit"}));
  EXPECT_FALSE(is_in_context());
}

TEST(PassScope, AllInstrumentsLeaveThoughOneThrows) {
  Log log;
  const auto context = context_with({logging_instrument(log, "a"), logging_instrument(log, "b", "exit")});
  enter_context(context);
  EXPECT_THROW(exit_context(context), UserError);
  EXPECT_EQ(log, (Log{"a enter", "b enter", "a exit", "b exit"}));
  EXPECT_FALSE(is_in_context());
}

TEST(PassScope, AnErrorInsideIsTheOneThatIsReported) {
  Log log;
  try {
    const With scope(context_with({logging_instrument(log, "a", "exit")}));
    throw UserError("mine");
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), "mine");
  }
  EXPECT_FALSE(is_in_context());
}

TEST(PassObjects, APassThatIsCalledRunsAtEveryLevelAndASequenceAsksTheContext) {
  Log log;
  const PassContextRef low = context_with({}, 0);
  run_pass(logging_object(log, "High", 4), make_module(), low);
  EXPECT_EQ(log, Log{"High"});
  const PassRef both =
      make_sequential({logging_object(log, "Low"), logging_object(log, "High", 4)}, make_pass_info({"both", 0, {}}));
  run_pass(both, make_module(), low);
  EXPECT_EQ(log, (Log{"High", "Low"}));
}

// A pass between may have undone it.
TEST(PassObjects, RequiredPassesRunBeforeEachAtAnyLevel) {
  Log log;
  register_global("relay._transform.TestNeeded",
                  PackedFunc([&log](Args) -> Value { return Value(logging_object(log, "TestNeeded", 4)); }), true);
  const PassRef a = logging_object(log, "A", 0, {"test_needed"}), b = logging_object(log, "B", 0, {"TestNeeded"});
  const PassContextRef context = context_with({}, 0);
  const auto run = [&](Array<PassRef> passes) {
    log.clear();
    run_pass(make_sequential(passes, make_pass_info({"list", 0, {}})), make_module(), context);
    return log;
  };
  EXPECT_EQ(run({a, b}), (Log{"TestNeeded", "A", "TestNeeded", "B"}));
  EXPECT_EQ(run({logging_object(log, "High", 3), a}), (Log{"TestNeeded", "A"}));
  context->opt_level = 4;
  EXPECT_EQ(run({logging_object(log, "TestNeeded", 4), a}), (Log{"TestNeeded", "A"}));
  EXPECT_THROW(run_pass(logging_object(log, "C", 0, {"Nothing"}), make_module(), context), UserError);
  make_known({"TestNeeded"});
  context->disabled_pass = {"TestNeeded"};
  EXPECT_EQ(kit::user_error_of([&] { run({a}); }),
            "pass A requires TestNeeded, which the context disables; enable TestNeeded, or leave A out");
  context->disabled_pass = {"A", "TestNeeded"};
  EXPECT_EQ(run({a}), Log{});
}

TEST(PassObjects, ATraceIsToldOfPassesThatAreTraceable) {
  Log log;
  Ref<PassInfoObj> quiet = make_pass_info({"Quiet"});
  quiet->traceable = false;
  const auto same = make_packed([](const IRModule& module, const PassContextRef&) { return module; });
  const PassRef list =
      make_sequential({logging_object(log, "A"), make_module_pass(same, quiet)}, make_pass_info({"list"}));
  const PassContextRef context = context_with({});
  context->trace = make_packed([&](const IRModule&, const Ref<PassInfoObj>& info, bool is_before) {
    log.push_back((is_before ? "before " : "after ") + std::string(info->name));
  });
  run_pass(list, make_module(), context);
  EXPECT_EQ(log, (Log{"before list", "before A", "A", "after A", "after list"}));
}

TEST(PassObjects, TheKeyIsTheKindOfPass) {
  const auto body = make_packed([](const Value& first, const Value&) { return first; });
  EXPECT_EQ(make_module_pass(body, make_pass_info({"M"}))->key(), "transform.ModulePass");
  EXPECT_EQ(make_function_pass(body, make_pass_info({"F"}))->key(), "transform.FunctionPass");
  EXPECT_EQ(make_function_pass(body, make_pass_info({"P"}), true)->key(), "transform.PrimFuncPass");
  EXPECT_EQ(make_sequential({}, make_pass_info({"S"}))->key(), "transform.Sequential");
}

TEST(PassObjects, APassOfFieldsAloneRefusesToRun) {
  PassRef empty = make_object<PassObj>();
  empty->info = make_pass_info({"empty", 0, {}});
  EXPECT_THROW(run_pass(empty, make_module(), context_with({})), UserError);
}

// It runs others in the same context: their instruments, levels and options hold for those too.
TEST(PassObjects, APassOfUsersSeesTheWholeContext) {
  Log log;
  const PassRef inner = logging_object(log, "Inner", 2);
  const PassRef outer = make_module_pass(make_packed([&](const IRModule& module, const PassContextRef& context) {
                                           EXPECT_EQ(context->opt_level, 3);
                                           EXPECT_EQ(context->instruments.size(), 1u);
                                           return run_pass(inner, module, context);
                                         }),
                                         make_pass_info({"Outer", 0, {}}));
  run_pass(outer, make_module(), context_with({logging_instrument(log, "a")}, 3));
  EXPECT_EQ(log, (Log{"a before", "a before", "Inner"}));
}

TEST(PassObjects, ANameThatNoPassGoesByIsToldWhereverItIsListed) {
  Log log;
  const PassRef pass =
      make_sequential({logging_object(log, "MineA"), logging_object(log, "MineB")}, make_pass_info({"s"}));
  const PassContextRef context = context_with({});
  context->disabled_pass = {"mine_b"};
  run_pass(pass, make_module(), context);
  EXPECT_EQ(log, Log{"MineA"});
  context->disabled_pass = {"mine_c"};
  EXPECT_TRUE(kit::user_error_of([&] {
                run_pass(pass, make_module(), context);
              }).starts_with("there is no pass 'mine_c' to leave out; the passes are "));
  // A pass of Relay that does not exist here may always be disabled.
  context->disabled_pass = {"AnnotateMemoryScope"};
  EXPECT_NO_THROW(run_pass(pass, make_module(), context));
  context->disabled_pass = {};
  context->required_pass = {"mine_d"};
  EXPECT_TRUE(kit::user_error_of([&] {
                run_pass(pass, make_module(), context);
              }).starts_with("there is no pass 'mine_d' to require; the passes are "));
}

TEST(PassConfig, KeysAreDeclaredAndChecked) {
  declare_config_key(config_key<int64_t>("test.depth", "how deep"));
  EXPECT_NO_THROW(check_config({{"test.depth", 3}}));
  EXPECT_THROW(check_config({{"test.depth", "three"}}), UserError);
  EXPECT_THROW(check_config({{"test.width", 3}}), UserError);
  PassContextRef context = context_with({});
  context->config = {{"test.width", 3}};
  EXPECT_THROW(enter_context(context), UserError);
  EXPECT_FALSE(is_in_context());
}

}  // namespace
}  // namespace headrace::pass
