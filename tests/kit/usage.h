// The command line of a small program.
#pragma once

#include <cstdio>
#include <optional>
#include <string_view>

namespace headrace::kit {

// The exit code of a program that need not go on, after printing `usage`: 0 when -h or --help asks for it, 2 when there
// are fewer arguments than `least` or more than `most`. Nothing otherwise.
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
