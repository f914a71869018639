// The command line of a small program.
#pragma once

#include <cstdio>
#include <optional>
#include <string_view>

namespace headrace::kit {

// Prints `usage` and returns the exit code of a program that need not go on: 0 when -h or --help asks for it, 2 for
// fewer arguments than `least` or more than `most`. Returns nothing otherwise.
inline std::optional<int> exit_for_usage(int argc, char** argv, const char* usage, int least, int most) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "-h" && std::string_view(argv[i]) != "--help") continue;
    std::printf("%s", usage);
    return 0;
  }
  if (argc - 1 >= least && argc - 1 <= most) return std::nullopt;
  std::fprintf(stderr, "%s", usage);
  return 2;
}

}  // namespace headrace::kit
