// The remedy of each reason that a placement has.
#include "partition/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

namespace headrace::partition {
namespace {

using ::testing::HasSubstr;

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

// PLACE_NO_FALLBACK is the note of a compile, not the reason of an op.
TEST(Reasons, ThoseOfPlacementsHaveRemedies) {
  for (const auto& [name, number] : reasons_of_header()) {
    const bool is_of_placement = (number >= HR_REASON_OP_UNSUPPORTED && number <= HR_REASON_BAD_MODEL) ||
                                 (number >= HR_REASON_PLACE_ONLY_NATIVE && number <= HR_REASON_PLACE_BY_OVERRIDE);
    const bool has_one = !remedy_of(static_cast<hr_reason>(number)).empty();
    if (!is_of_placement) continue;
    EXPECT_EQ(has_one, number != HR_REASON_PLACE_NO_FALLBACK) << name;
  }
  EXPECT_THAT(std::string(remedy_of(HR_REASON_DTYPE_UNSUPPORTED)), HasSubstr("cast the tensors"));
  EXPECT_THAT(std::string(remedy_of(HR_REASON_BACKEND_MISSING)), HasSubstr("USE_<NAME>=ON"));
  EXPECT_EQ(remedy_of(HR_REASON_FUSE_DEPTH), "");
}

}  // namespace
}  // namespace headrace::partition
