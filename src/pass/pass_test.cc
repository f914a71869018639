#include "pass/pass.h"

#include <gtest/gtest.h>

#include "kit/errors.h"
#include "pass/instruments.h"

namespace headrace::pass {
namespace {

// A pass that writes its name down.
Pass logging_pass(std::vector<std::string>& log, std::string name, int32_t level = 0,
                  std::vector<std::string> aliases = {}) {
  Pass pass;
  pass.info = {.name = name, .opt_level = level, .aliases = std::move(aliases)};
  pass.run = [&log, name](const IRModule& module, const PassContext&) {
    log.push_back(name);
    return module;
  };
  return pass;
}

TEST(RunPasses, RunsInOrderAndSkipsByLevel) {
  std::vector<std::string> log;
  run_passes({logging_pass(log, "A"), logging_pass(log, "B", 3), logging_pass(log, "C", 2)}, make_module(), {});
  EXPECT_EQ(log, (std::vector<std::string>{"A", "C"}));
}

// A pass may then free the constants that it replaces.
TEST(RunPasses, APassHasTheOnlyReferenceToAModuleThatIsGivenUp) {
  std::vector<bool> is_own;
  Pass pass;
  pass.run = [&](IRModule module, const PassContext&) {
    is_own.push_back(module->is_unique());
    return module;
  };
  run_passes({pass, pass}, make_module(), {});
  EXPECT_EQ(is_own, (std::vector<bool>{true, true}));
  const IRModule kept = make_module();
  EXPECT_EQ(run_passes({pass}, kept, {}), kept);
  EXPECT_FALSE(is_own.back());
}

TEST(RunPasses, RequiredBeatsLevelAndDisabledSkips) {
  std::vector<std::string> log;
  PassContext context;
  context.required_pass = {"high_level"};
  context.disabled_pass = {"FOLD_CONSTANT"};
  run_passes({logging_pass(log, "HighLevel", 4), logging_pass(log, "FoldConstant")}, make_module(), context);
  EXPECT_EQ(log, std::vector<std::string>{"HighLevel"});
}

TEST(RunPasses, VerifyNamesThePassThatBrokeTheModule) {
  std::vector<std::string> log;
  PassContext context;
  context.instruments = {make_verify_instrument([&](const IRModule&) {
    if (log.size() == 2) throw UserError("rule 3");
  })};
  try {
    run_passes({logging_pass(log, "A"), logging_pass(log, "B")}, make_module(), context);
    FAIL() << "no error";
  } catch (const InternalError& e) {
    EXPECT_NE(e.message().find("after pass B: rule 3"), std::string::npos) << e.what();
  }
}

struct Recorder : PassInstrument {
  std::vector<std::string>& log;
  bool fail_in_before = false, fail_in_exit = false;
  explicit Recorder(std::vector<std::string>& l) : log(l) {}
  std::string name() const override { return "recorder"; }
  void enter_pass_ctx() override { log.push_back("enter"); }
  void exit_pass_ctx() override {
    log.push_back("exit");
    if (fail_in_exit) throw UserError("late");
  }
  bool should_run(const IRModule&, const PassInfo& info) override { return info.name != "Skipped"; }
  void run_before_pass(const IRModule&, const PassInfo& info) override {
    log.push_back("before " + info.name);
    if (fail_in_before) throw UserError("stop");
  }
  void run_after_pass(const IRModule&, const PassInfo& info) override { log.push_back("after " + info.name); }
};

TEST(RunPasses, InstrumentsSeeEveryPassAndMaySkip) {
  std::vector<std::string> log, ran;
  PassContext context;
  context.instruments = {std::make_shared<Recorder>(log)};
  run_passes({logging_pass(ran, "A"), logging_pass(ran, "Skipped")}, make_module(), context);
  EXPECT_EQ(log, (std::vector<std::string>{"enter", "before A", "after A", "exit"}));
  EXPECT_EQ(ran, std::vector<std::string>{"A"});
}

TEST(RunPasses, InstrumentThatThrowsLeavesTheContext) {
  std::vector<std::string> log, ran;
  auto recorder = std::make_shared<Recorder>(log);
  recorder->fail_in_before = true;
  PassContext context;
  context.instruments = {recorder};
  EXPECT_THROW(run_passes({logging_pass(ran, "A")}, make_module(), context), UserError);
  EXPECT_EQ(log, (std::vector<std::string>{"enter", "before A", "exit"}));
  EXPECT_TRUE(ran.empty());
}

TEST(RunPasses, AnErrorOfAnInstrumentAtTheEndIsOneOfTheRun) {
  std::vector<std::string> log, ran;
  auto first = std::make_shared<Recorder>(log), second = std::make_shared<Recorder>(log);
  second->fail_in_exit = true;
  PassContext context;
  context.instruments = {first, second};
  const auto run = [&] { run_passes({logging_pass(ran, "A")}, make_module(), context); };
  EXPECT_EQ(kit::user_error_of(run), "late");
  EXPECT_EQ(std::count(log.begin(), log.end(), "exit"), 2);
  first->fail_in_before = true;
  EXPECT_EQ(kit::user_error_of(run), "stop");  // the run's own error comes first
}

TEST(RunPasses, OtherNamesOfAPassAreItsOwn) {
  std::vector<std::string> log;
  PassContext context;
  context.required_pass = {"Mine"};
  context.disabled_pass = {"the_other"};
  run_passes({logging_pass(log, "A", 4, {"Yours", "mine"}), logging_pass(log, "B", 0, {"TheOther"})}, make_module(),
             context);
  EXPECT_EQ(log, std::vector<std::string>{"A"});
}

TEST(RunPasses, AnOrderThatIsDeclaredIsHeld) {
  std::vector<std::string> log;
  Pass last = logging_pass(log, "Last"), undo = logging_pass(log, "Undo");
  last.info.runs_after = {"first"};
  undo.info.undoes = {"last"};
  const Pass first = logging_pass(log, "First", 2);
  run_passes({first, last}, make_module(), {});
  run_passes({last, undo, first}, make_module(), {});
  run_passes({first, last, first, last}, make_module(), {});  // as two rounds of partitioning
  PassContext low;
  low.opt_level = 1;
  run_passes({last, first}, make_module(), low);  // which does not run the first
  log.clear();
  EXPECT_EQ(kit::user_error_of([&] { run_passes({last, first}, make_module(), {}); }),
            "Last comes after First, and in this list before it; put First first");
  EXPECT_TRUE(log.empty());
}

TEST(PassContext, AnOptionOfAnotherKindIsTold) {
  PassContext context;
  EXPECT_EQ(context.option<int64_t>("test.depth"), std::nullopt);
  context.config.set("test.depth", Value(3));
  EXPECT_EQ(context.option<int64_t>("test.depth"), 3);
  EXPECT_EQ(kit::user_error_of([&] { context.option<std::string>("test.depth"); }),
            "configuration 'test.depth': expected str, got int 3");
}

TEST(PassNames, SpellingsResolve) {
  EXPECT_TRUE(same_pass_name("FoldConstant", "fold_constant"));
  EXPECT_FALSE(same_pass_name("FoldConstant", "FoldScaleAxis"));
}

}  // namespace
}  // namespace headrace::pass
