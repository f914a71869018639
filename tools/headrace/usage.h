// Checks command-line options and words the messages about wrong ones, for `headrace` and `headrace-opt`.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace headrace::tools {

// The range of integers that an option takes, and an example for messages.
struct Numbers {
  int64_t least, most;  // INT64_MAX: no upper bound
  int64_t example;
};

// Restricts the option to these integers. The usage error for any other value names the option, the allowed values and
// an example.
CLI::Option* takes(CLI::Option* option, Numbers numbers);
// The range of real numbers that an option takes.
struct Sizes {
  double least = 0, most = std::numeric_limits<double>::infinity();
};
// Restricts the option to finite numbers of the range.
CLI::Option* takes_size(CLI::Option* option, const char* example, Sizes sizes = {});
// Restricts the option to `words`. `what` says what the words name, such as "peer".
CLI::Option* takes_word(CLI::Option* option, const std::string& what, const std::vector<std::string>& words);
// Returns the words that takes_word() gave the option; empty for other options.
std::vector<std::string> words_of(const CLI::Option& option);

// Makes the option take a path. A value that begins with '-' is an option whose own value was forgotten; a file of such
// a name is ./-name.
CLI::Option* takes_path(CLI::Option* option, const char* type);

// Options of both programs.
inline constexpr const char* kOptLevelHelp =
    "Optimization level. 0: no fusion; 3 (default): everything that helps this compiler; 4: also Relay's riskier "
    "passes";
CLI::Option* takes_opt_level(CLI::Option* option);
inline constexpr const char* kDisablePassHelp = "Passes to leave out, by name, with commas between; may be repeated";
CLI::Option* takes_passes(CLI::Option* option);

// Returns "; did you mean 'a' or 'b'?" if some of `known` are near `name`, otherwise nothing.
std::string suggest(const std::string& name, const std::vector<std::string>& known);

// As suggest(); without a near name "; WHAT a, b, c", the whole list.
std::string suggest_or_list(const std::string& name, const std::vector<std::string>& known, const char* what);

// Returns a sentence about the mistake in the command line.
std::string usage_message(const CLI::App& program, const CLI::ParseError& error);

}  // namespace headrace::tools
