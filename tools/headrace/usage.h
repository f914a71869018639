// Numbers on the command line, and what is said of a command line that is wrong; `headrace` and `headrace-opt` share
// it.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdint>
#include <string>

namespace headrace::tools {

// The whole numbers that an option takes, and one of them for messages.
struct Numbers {
  int64_t least, most;  // INT64_MAX: as many as there are
  int64_t example;
};

// Lets the option take those numbers only. Wrong ones are a usage error that names the option, what it takes, and an
// example.
CLI::Option* takes(CLI::Option* option, Numbers numbers);
// The same for an option that takes a finite number of 0 or more.
CLI::Option* takes_size(CLI::Option* option, const char* example);
// The same for one that takes one of some words; `what` is what they name: "peer".
CLI::Option* takes_word(CLI::Option* option, const std::string& what, const std::vector<std::string>& words);

// What both programs have.
inline constexpr const char* kOptLevelHelp =
    "Passes of the compiler's lists with a higher level are left out; 0: each op by itself, 3: all that the compiler "
    "itself gains from, 4: what else Relay does";
CLI::Option* takes_opt_level(CLI::Option* option);
inline constexpr const char* kDisablePassHelp = "Passes to leave out, by name, with commas between; may be repeated";
CLI::Option* takes_passes(CLI::Option* option);

// What is wrong with the command line, in a sentence.
std::string usage_message(const CLI::App& program, const CLI::ParseError& error);

}  // namespace headrace::tools
