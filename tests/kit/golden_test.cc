#include "kit/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace headrace::kit {
namespace {

std::filesystem::path temporary(std::string_view name) { return std::filesystem::path(testing::TempDir()) / name; }

void write(const std::filesystem::path& file, std::string_view text) { std::ofstream(file, std::ios::binary) << text; }

TEST(Golden, EqualTextMatches) {
  if (is_blessing()) GTEST_SKIP() << "this test is about comparing";
  auto file = temporary("equal.txt");
  write(file, "a\nb\n");
  EXPECT_TRUE(matches_golden(file, "a\nb\n"));
}

TEST(Golden, DifferentTextShowsTheLinesAndTheCommand) {
  if (is_blessing()) GTEST_SKIP() << "this test is about comparing";
  auto file = temporary("different.txt");
  write(file, "a\nb\nc\nd\n");
  testing::AssertionResult result = matches_golden(file, "a\nb\nX\nd\n");
  ASSERT_FALSE(result);
  std::string message = result.message();
  EXPECT_NE(message.find("at line 3:\n a\n b\n-c\n+X\n d\n"), std::string::npos) << message;
  EXPECT_NE(message.find("--gtest_filter=Golden.DifferentTextShowsTheLinesAndTheCommand --bless"), std::string::npos);
}

TEST(Golden, MissingFileSaysHowToWriteIt) {
  if (is_blessing()) GTEST_SKIP() << "this test is about comparing";
  testing::AssertionResult result = matches_golden(temporary("no_such.txt"), "a\n");
  ASSERT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("there is no golden file"), std::string::npos);
}

// Runs this program again on the test below with HEADRACE_BLESS=1: the file must be written.
TEST(Golden, BlessWritesTheFile) {
  auto file = temporary("blessed/out.txt");
  if (std::getenv("KIT_BLESS_CHILD")) {
    EXPECT_TRUE(matches_golden(file, "new\n"));
    return;
  }
  std::filesystem::remove(file);
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string command = "KIT_BLESS_CHILD=1 '" + self + "' --gtest_filter=Golden.BlessWritesTheFile --bless > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::stringstream written;
  written << std::ifstream(file).rdbuf();
  EXPECT_EQ(written.str(), "new\n");
}

TEST(Golden, DiffOfNewlineAtEndAndOfLongTexts) {
  EXPECT_EQ(diff_lines("a", "a"), "");
  EXPECT_NE(diff_lines("a\n", "a").find("newline at the end"), std::string::npos);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "line\n";
  EXPECT_NE(diff_lines("", many).find("and 60 more lines"), std::string::npos);
}

}  // namespace
}  // namespace headrace::kit
