// Compares a program's output with a checked-in file. With --bless (or HEADRACE_BLESS=1) it writes the file instead, so
// that a change of output is reviewed as a diff.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace headrace::kit {

// Returns whether the test program was started with --bless or with HEADRACE_BLESS=1.
bool is_blessing();

// Compares `actual` with the file. On a difference the failure shows the lines that differ and the one command that
// updates the file. While blessing it writes the file (and its folder) and succeeds.
testing::AssertionResult matches_golden(const std::filesystem::path& file, std::string_view actual);

// Returns the lines that differ, with `-` for expected and `+` for actual, and up to two equal lines around them; at
// most 40 lines. Empty when the texts are equal.
std::string diff_lines(std::string_view expected, std::string_view actual);

}  // namespace headrace::kit
