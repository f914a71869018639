// Compares the names of reasons with the installed header.
#include "base/reason_name.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

namespace headrace {
namespace {

// Returns the names and numbers that the installed header lists.
std::vector<std::pair<std::string, int>> reasons_of_header() {
  std::ifstream file(std::string(HEADRACE_SOURCE_DIR) + "/include/headrace/reason.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex row("HR_REASON_([A-Z_]+) = ([0-9]+)");
  std::vector<std::pair<std::string, int>> reasons;
  for (std::sregex_iterator one(text.begin(), text.end(), row), end; one != end; ++one)
    reasons.emplace_back((*one)[1], std::stoi((*one)[2]));
  return reasons;
}

TEST(ReasonName, IsThatOfTheHeader) {
  const auto reasons = reasons_of_header();
  EXPECT_GT(reasons.size(), 40u);
  for (const auto& [name, number] : reasons) EXPECT_EQ(reason_name(static_cast<hr_reason>(number)), name);
  EXPECT_EQ(reason_name(static_cast<hr_reason>(127)), "");
}

}  // namespace
}  // namespace headrace
