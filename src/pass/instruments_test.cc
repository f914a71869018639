#include "pass/instruments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kit/errors.h"
#include "kit/files.h"
#include "kit/property.h"
#include "object/structural_equal.h"
#include "pass/round_trip.h"
#include "pass/text_diff.h"
#include "relay/expr.h"

namespace headrace::pass {
namespace {

TEST(DiffTexts, ShowsWhatChangedWithContext) {
  EXPECT_EQ(diff_texts("a\nb\nc\nd\ne\n", "a\nb\nx\nd\ne\n", 1), " b\n-c\n+x\n d\n");
  EXPECT_EQ(diff_texts("a\nb\nc\nd\ne\nf\n", "b\nc\nd\ne\nF\n", 1), "-a\n b\n...\n e\n-f\n+F\n");
  EXPECT_EQ(diff_texts("same\n", "same\n"), "");
  EXPECT_EQ(diff_texts("", "new\n"), "+new\n");
  EXPECT_EQ(diff_texts("old\n", ""), "-old\n");
}

TEST(DiffTexts, BothSidesHaveOneNumbering) {
  // g reads %x in place of f's result; h reads g's result, as before.
  EXPECT_EQ(diff_texts("%0 = f(%x);\n%1 = g(%0);\n%2 = h(%1);\n", "%0 = g(%x);\n%1 = h(%0);\n", 1),
            "-%0 = f(%x);\n-%1 = g(%0);\n+%3 = g(%x);\n-%2 = h(%1);\n+%2 = h(%3);\n");
  EXPECT_EQ(diff_texts("%0 = f(%x);\n%1 = g(%x);\nh(%1)\n", "%0 = g(%x);\nh(%0)\n", 1), "-%0 = f(%x);\n %1 = g(%x);\n");
  EXPECT_EQ(diff_texts("%0 = f(%x);\n%1 = g(%0);\nh(%1)\n", "%0 = f(%x);\n%1 = k(%0);\n%2 = g(%1);\nh(%2)\n", 0),
            "+%2 = k(%0);\n-%1 = g(%0);\n+%1 = g(%2);\n");
}

TEST(DiffTexts, RenumberedValuesAreEqual) {
  EXPECT_EQ(diff_texts("%7 = f();\n%10 = f(%7, %p0);\n", "%6 = f();\n%9 = f(%6, %p0);\n"), "");
  // Functions number their values anew.
  EXPECT_EQ(diff_texts("%1 = f();\ng(%1)\n\n%1 = k();\ng(%1)\n", "%0 = f();\ng(%0)\n\n%2 = k();\ng(%2)\n"), "");
}

TEST(DiffTexts, FarApartTextsAreReplaced) {
  std::string a, b;
  for (int i = 0; i < 1500; ++i) {
    a += fmt::format("a{}\n", i);
    b += fmt::format("b{}\n", i);
  }
  const std::string diff = diff_texts(a, b);
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '\n'), 3000);
}

// Taking the `-` lines away and the `+` lines in gives the new text, and no shorter list of changes does.
struct Pair {
  std::vector<int> a, b;
};

int longest_common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::vector<int>> table(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k)
      table[i + 1][k + 1] = a[i] == b[k] ? table[i][k] + 1 : std::max(table[i][k + 1], table[i + 1][k]);
  }
  return table[a.size()][b.size()];
}

TEST(DiffTexts, IsShortestAndComplete) {
  kit::Property<Pair> property;
  property.runs_ci = 300;
  property.runs_full = 5000;
  property.generate = [](kit::Random& random) {
    Pair pair;
    for (auto* list : {&pair.a, &pair.b}) {
      const int64_t size = random.integer(0, 12);
      for (int64_t i = 0; i < size; ++i) list->push_back(static_cast<int>(random.integer(0, 3)));
    }
    return pair;
  };
  property.show = [](const Pair& p) { return fmt::format("{} / {}", fmt::join(p.a, " "), fmt::join(p.b, " ")); };
  property.check = [](const Pair& p) -> std::optional<std::string> {
    const auto text = [](const std::vector<int>& list) {
      std::string result;
      for (const int i : list) result += fmt::format("{}\n", i);
      return result;
    };
    const std::string diff = diff_texts(text(p.a), text(p.b), 100);
    std::string before, after;
    int changes = 0;
    for (size_t i = 0; i + 1 < diff.size(); i = diff.find('\n', i) + 1) {
      const std::string line = diff.substr(i + 1, diff.find('\n', i) - i);
      changes += diff[i] == ' ' ? 0 : 1;
      if (diff[i] != '+') before += line;
      if (diff[i] != '-') after += line;
    }
    const int fewest = static_cast<int>(p.a.size() + p.b.size()) - 2 * longest_common(p.a, p.b);
    if (changes != fewest) return fmt::format("{} changes, {} are enough:\n{}", changes, fewest, diff);
    if (changes > 0 && (before != text(p.a) || after != text(p.b))) return "the parts do not add up:\n" + diff;
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

IRModule module_of(double value) { return make_module(relay::make_function({}, relay::make_scalar(value))); }

Pass setting(std::string name, double value) {
  return {{std::move(name), 0, {}}, [value](const IRModule&, const PassContext&) { return module_of(value); }};
}

Pass keeping(std::string name) {
  return {{std::move(name), 0, {}}, [](const IRModule& module, const PassContext&) { return module; }};
}

TEST(DumpInstrument, ShowsTheDiffOfEachPass) {
  std::string text;
  PassContext context;
  context.instruments = {make_dump_instrument(Dump::diff, [&](std::string_view piece) { text += piece; })};
  run_passes({keeping("Idle"), setting("Set", 2)}, module_of(1), context);
  EXPECT_EQ(text,
            "// ---- Idle: no change\n"
            "// ---- Set: changed\n"
            " #[version = \"0.0.5\"]\n def @main() {\n-  1f\n+  2f\n }\n");
}

// The first of two constants goes; the other is number 1 on both sides.
TEST(DumpInstrument, ConstantsHaveOneNumbering) {
  const Expr a = relay::make_constant(NDArray::zeros({30}, DataType::float_(32)));
  const Expr b = relay::make_constant(NDArray::zeros({40}, DataType::float_(32)));
  const Pass drop{{"Drop", 0, {}}, [b](const IRModule&, const PassContext&) {
                    return make_module(relay::make_function({}, relay::make_tuple({b})));
                  }};
  std::string text;
  PassContext context;
  context.instruments = {make_dump_instrument(Dump::diff, [&](std::string_view piece) { text += piece; })};
  run_passes({drop}, make_module(relay::make_function({}, relay::make_tuple({a, b}))), context);
  EXPECT_THAT(text, ::testing::HasSubstr("-  (meta[relay.Constant][0], meta[relay.Constant][1])\n"
                                         "+  (meta[relay.Constant][1],)\n"));
}

TEST(DumpInstrument, ShowsTheModuleAfterEachPass) {
  std::string text;
  PassContext context;
  context.instruments = {make_dump_instrument(Dump::all, [&](std::string_view piece) { text += piece; })};
  run_passes({setting("Set", 2)}, module_of(1), context);
  EXPECT_EQ(text, "// ---- after Set\n#[version = \"0.0.5\"]\ndef @main() {\n  2f\n}\n");
}

class DumpFolder : public ::testing::Test {
 protected:
  DumpFolder() { std::filesystem::remove_all(folder_); }
  ~DumpFolder() override { std::filesystem::remove_all(folder_); }
  std::string text(const std::string& name) const { return kit::read_file(folder_ / name); }
  const std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "dump_folder" / "deep";
};

TEST_F(DumpFolder, HoldsTheProgramAndWhatChanged) {
  PassContext context;
  context.instruments = {make_dump_folder_instrument(folder_, kit::write_file)};
  run_passes({keeping("Idle"), setting("Set", 2), keeping("Idle")}, module_of(1), context);
  EXPECT_EQ(text("00_program.relay"), "#[version = \"0.0.5\"]\ndef @main() {\n  1f\n}\n");
  EXPECT_EQ(text("02_Set.diff"), " #[version = \"0.0.5\"]\n def @main() {\n-  1f\n+  2f\n }\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(DumpFolder, SaysWhatCannotBeWritten) {
  EXPECT_THAT(kit::user_error_of([] { make_dump_folder_instrument("/dev/null/x", {}); }),
              ::testing::HasSubstr("'/dev/null/x' cannot be made a folder"));
  EXPECT_THAT(kit::user_error_of([] { make_dump_folder_instrument("/dev/null", {}); }),
              ::testing::HasSubstr("'/dev/null' cannot be made a folder"));
  PassContext context;
  context.instruments = {make_dump_folder_instrument(
      folder_, [](const std::string& path, std::string_view) { throw_user_error("no room for {}", path); })};
  EXPECT_EQ(kit::user_error_of([&] { run_passes({keeping("Idle")}, module_of(1), context); }),
            "no room for " + (folder_ / "00_program.relay").string());
}

TEST(RoundTrip, FindsAProgramWhoseTextDoesNotReadBack) {
  PassContext context;
  context.instruments = {make_round_trip_instrument()};
  const IRModule module = run_passes({keeping("Idle"), setting("Set", 2)}, module_of(1), context);
  EXPECT_TRUE(structural_equal(Value(module), Value(module_of(2))));
  const Pass breaking{{"Break", 0, {}}, [](const IRModule&, const PassContext&) {
                        return make_module(relay::make_function({}, relay::make_var("unbound", {})));
                      }};
  try {
    run_passes({keeping("Idle"), breaking}, module_of(1), context);
    FAIL() << "an unbound variable was read back";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("after pass Break: the text cannot be read back"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("unbound"));
  }
}

TEST(RoundTrip, CoversConstantsBesideTheText) {
  PassContext context;
  context.instruments = {make_round_trip_instrument()};
  const Expr big = relay::make_constant(NDArray::zeros({40}, DataType::float_(32)));
  const Expr same = relay::make_constant(NDArray::zeros({40}, DataType::float_(32)));
  const IRModule module = make_module(relay::make_function({}, relay::make_tuple({big, same, big})));
  EXPECT_EQ(run_passes({keeping("Idle")}, module, context), module);
}

TEST(TimingInstrument, CountsRuns) {
  const auto timing = std::make_shared<TimingInstrument>();
  PassContext context;
  context.instruments = {timing};
  run_passes({keeping("A"), keeping("B"), keeping("A")}, module_of(1), context);
  ASSERT_EQ(timing->rows().size(), 2u);
  EXPECT_EQ(timing->rows()[0].pass, "A");
  EXPECT_EQ(timing->rows()[0].runs, 2);
  EXPECT_GE(timing->rows()[1].seconds, 0);
  EXPECT_NE(timing->report().find("\nB "), std::string::npos) << timing->report();
}

// A pass that runs others in its own context, and one whose inner run throws half way.
Pass nesting(std::string name) {
  return {{std::move(name), 0, {}}, [](const IRModule& module, const PassContext& context) {
            const Pass failing{{"Fail", 0, {}},
                               [](const IRModule&, const PassContext&) -> IRModule { throw UserError("no"); }};
            const IRModule inner = run_passes({setting("Inner", 2)}, module, context);
            EXPECT_THROW(run_passes({keeping("Idle"), failing}, inner, context), UserError);
            return inner;
          }};
}

TEST(Instruments, PassesMayRunPasses) {
  std::string text;
  const auto timing = std::make_shared<TimingInstrument>();
  PassContext context;
  context.instruments = {make_dump_instrument(Dump::diff, [&](std::string_view piece) { text += piece; }), timing,
                         make_round_trip_instrument()};
  for (int run = 0; run < 2; ++run) {
    text.clear();
    run_passes({nesting("Outer"), keeping("Last")}, module_of(1), context);
    const std::string changed = ": changed\n #[version = \"0.0.5\"]\n def @main() {\n-  1f\n+  2f\n }\n";
    EXPECT_EQ(text, "// ---- Inner" + changed + "// ---- Idle: no change\n// ---- Outer" + changed +
                        "// ---- Last: no change\n");
  }
  std::vector<std::string> passes;
  for (const TimingInstrument::Row& row : timing->rows()) {
    passes.push_back(row.pass);
    EXPECT_EQ(row.runs, 2) << row.pass;
  }
  EXPECT_EQ(passes, (std::vector<std::string>{"Inner", "Idle", "Outer", "Last"}));
}

TEST_F(DumpFolder, PassesMayRunPasses) {
  PassContext context;
  context.instruments = {make_dump_folder_instrument(folder_, kit::write_file)};
  run_passes({nesting("Outer")}, module_of(1), context);
  EXPECT_EQ(text("02_Inner.diff"), text("01_Outer.diff"));
  EXPECT_THAT(text("01_Outer.diff"), ::testing::HasSubstr("+  2f"));
}

}  // namespace
}  // namespace headrace::pass
