#include "driver/all_passes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "functions/register_functions.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "object/function.h"
#include "passes/pipeline.h"

namespace headrace::driver {
namespace {

TEST(AllPasses, HoldsEveryPassOfTheListsOnce) {
  std::set<std::string> names;
  for (const pass::Pass& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.info.name).second) << pass.info.name;
    EXPECT_FALSE(pass.info.summary.empty());
  }
  for (const auto& list : {passes::canonical(), passes::native({}), passes::by_name()}) {
    for (const pass::Pass& pass : list) EXPECT_TRUE(names.contains(pass.info.name)) << pass.info.name;
  }
  EXPECT_TRUE(names.contains("InferType"));
}

TEST(AllPasses, SpellingsResolve) {
  EXPECT_EQ(get_pass("fuse_ops").info.name, "FuseOps");
  EXPECT_EQ(get_pass("FuseOps").info.name, "FuseOps");
}

// A row of src/passes/tests/relay_passes.txt.
struct NamedPass {
  std::string name;
  std::vector<std::string> spellings;
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<NamedPass> named_passes() {
  std::ifstream file(HEADRACE_SOURCE_DIR "/src/passes/tests/relay_passes.txt");
  std::vector<NamedPass> rows;
  for (std::string line; std::getline(file, line);) {
    const size_t bar = line.find('|');
    if (line.starts_with('#') || bar == std::string::npos) continue;
    rows.push_back({words_of(line.substr(0, bar)).at(0), words_of(line.substr(bar + 1))});
  }
  return rows;
}

// The passes that the golden files beside that table are of.
std::set<std::string> passes_with_goldens() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HEADRACE_SOURCE_DIR "/src/passes/tests")) {
    std::ifstream file(entry.path());
    std::string line;
    if (entry.path().extension() == ".relay" && std::getline(file, line) && line.starts_with("// pass: "))
      names.insert(line.substr(9));
  }
  return names;
}

// By its own name in the list and in the registry, by every spelling wherever a pass is named, with a golden text.
TEST(AllPasses, EveryPassOfRelayIsHere) {
  functions::register_functions();
  const std::vector<NamedPass> rows = named_passes();
  const std::set<std::string> goldens = passes_with_goldens();
  ASSERT_GE(rows.size(), 37u);
  for (const NamedPass& row : rows) {
    EXPECT_EQ(get_pass(row.name).info.name, row.name);
    EXPECT_TRUE(find_global("relay._transform." + row.name)) << row.name;
    for (const std::string& spelling : row.spellings) {
      EXPECT_EQ(get_pass(spelling).info.name, row.name) << spelling;
      EXPECT_TRUE(find_global("relay._transform." + spelling)) << spelling;
      pass::PassContext context;
      context.disabled_pass = {spelling};
      EXPECT_TRUE(context.is_disabled(get_pass(row.name).info)) << spelling;
    }
    EXPECT_TRUE(goldens.contains(row.name)) << row.name;
  }
}

TEST(AllPasses, AnUnknownNameListsTheKnown) {
  try {
    get_pass("canonical");  // a list, where one pass is wanted
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.message().starts_with("there is no pass 'canonical'; there are InferType, ")) << e.what();
  }
  try {
    parse_pass_list("FuseOps,FuseOop");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(), "there is no pass 'FuseOop'; did you mean FuseOps?");
  }
}

TEST(AllPasses, ListsExpand) {
  const PassList list = parse_pass_list("infer_type, canonical,native ,fold_constant");
  EXPECT_EQ(list.passes.size(), 2 + passes::canonical().size() + passes::native({}).size());
  EXPECT_EQ(list.passes.front().info.name, "InferType");
  EXPECT_EQ(list.passes.back().info.name, "FoldConstant");
  EXPECT_EQ(list.named, (std::vector<std::string>{"InferType", "FoldConstant"}));
  EXPECT_TRUE(parse_pass_list("").passes.empty());
}

TEST(AllPasses, LoopProgramsHaveTheirOwn) {
  EXPECT_EQ(get_pass("unroll_loop", Ir::tir).info.name, "UnrollLoop");
  EXPECT_EQ(parse_pass_list("kernel,lower_math", Ir::tir).passes.size(), all_passes(Ir::tir).size() + 1);
  EXPECT_EQ(kit::user_error_of([] { get_pass("FuseOop", Ir::tir); }),
            "there is no pass 'FuseOop' of loop programs; there are VectorizeLoop, UnrollLoop, LowerMath");
}

TEST(AllPasses, APassOfOtherProgramsIsKnownAsThat) {
  EXPECT_EQ(kit::user_error_of([] { get_pass("fuse_ops", Ir::tir); }),
            "FuseOps is a pass of Relay programs, and this is a loop program; for it there are VectorizeLoop, "
            "UnrollLoop, LowerMath");
  const std::string error = kit::user_error_of([] { parse_pass_list("FoldConstant,UnrollLoop"); });
  EXPECT_TRUE(
      error.starts_with("UnrollLoop is a pass of loop programs, and this is a Relay program; for it there are "
                        "canonical, native, InferType, "))
      << error;
}

}  // namespace
}  // namespace headrace::driver
