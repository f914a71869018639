#include "kit/golden.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "kit/options.h"

namespace headrace::kit {

namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string update_command() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = test ? std::string(" --gtest_filter=") + test->test_suite_name() + "." + test->name() : "";
  return options().program + filter + " --bless";
}

}  // namespace

bool is_blessing() { return options().bless; }

// Cuts the common head and tail and shows the lines between them, since golden texts mostly change in one place.
std::string diff_lines(std::string_view expected, std::string_view actual) {
  if (expected == actual) return {};
  std::vector<std::string_view> old_lines = split_lines(expected);
  std::vector<std::string_view> new_lines = split_lines(actual);
  size_t shorter = std::min(old_lines.size(), new_lines.size());
  size_t head = 0;
  while (head < shorter && old_lines[head] == new_lines[head]) ++head;
  size_t tail = 0;
  while (tail < shorter - head && old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail])
    ++tail;
  std::vector<std::string> shown;
  auto show = [&](char mark, const std::vector<std::string_view>& lines, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) shown.push_back(mark + std::string(lines[i]));
  };
  show(' ', old_lines, head - std::min<size_t>(head, 2), head);
  show('-', old_lines, head, old_lines.size() - tail);
  show('+', new_lines, head, new_lines.size() - tail);
  show(' ', old_lines, old_lines.size() - tail, old_lines.size() - tail + std::min<size_t>(tail, 2));
  if (old_lines == new_lines) shown = {"(only the newline at the end of the file differs)"};
  std::string text = "at line " + std::to_string(head + 1) + ":\n";
  constexpr size_t kMostLines = 40;
  for (size_t i = 0; i < std::min(shown.size(), kMostLines); ++i) text += shown[i] + "\n";
  if (shown.size() > kMostLines) text += "... and " + std::to_string(shown.size() - kMostLines) + " more lines\n";
  return text;
}

testing::AssertionResult matches_golden(const std::filesystem::path& file, std::string_view actual) {
  if (is_blessing()) {
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << actual;
    return testing::AssertionSuccess();
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    return testing::AssertionFailure() << "there is no golden file " << file.string()
                                       << "\nto write it: " << update_command();
  }
  std::stringstream expected;
  expected << stream.rdbuf();
  std::string difference = diff_lines(expected.str(), actual);
  if (difference.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << file.string() << " differs " << difference
                                     << "to update it: " << update_command();
}

}  // namespace headrace::kit
