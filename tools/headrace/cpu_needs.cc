#include "tools/headrace/cpu_needs.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/architecture.h"
#include "runtime/cpu_features.h"

namespace headrace::tools {

namespace {

using Features = std::set<std::string, std::less<>>;

struct Level {
  std::string_view architecture;
  std::string_view name;  // empty: what every processor of the architecture has
  Features features;      // beyond those of the level before, by LLVM's names
};

// The levels of x86-64 (x86-64 psABI, section 3.1.1, with the features that LLVM counts to them: crc32 belongs to
// SSE4.2, evex512 to AVX-512) and the base of AArch64.
const std::array<Level, 5>& levels() {
  static const std::array<Level, 5> kLevels = {{
      {"x86_64", "", {"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"}},
      {"x86_64", "x86-64-v2", {"crc32", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"}},
      {"x86_64", "x86-64-v3", {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}},
      {"x86_64", "x86-64-v4", {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "evex512"}},
      {"aarch64", "", {"fp-armv8", "neon"}},
  }};
  return kLevels;
}

// Takes the features of each level out of `needed`, as long as the code needs the whole level; returns the highest
// such level's name. The base of the architecture goes out in any case.
std::string_view take_level(std::string_view architecture, Features& needed) {
  std::string_view name;
  for (const Level& level : levels()) {
    if (level.architecture != architecture) continue;
    const bool is_whole = std::includes(needed.begin(), needed.end(), level.features.begin(), level.features.end());
    if (!is_whole && !level.name.empty()) break;
    for (const std::string& feature : level.features) needed.erase(feature);
    name = level.name;
  }
  return name;
}

}  // namespace

std::string cpu_needs(const artifact::Target& target, size_t most) {
  const std::string_view architecture = architecture_of(target.triple);
  Features needed(target.features.begin(), target.features.end());
  const std::string_view level = take_level(architecture, needed);
  if (level.empty() && needed.empty()) return fmt::format("any {} processor", architecture);
  const std::vector<std::string> named(needed.begin(),
                                       std::next(needed.begin(), static_cast<int64_t>(std::min(most, needed.size()))));
  std::string text = fmt::format("an {} processor", architecture);
  if (!level.empty()) text += fmt::format(" of level {}", level);
  if (!named.empty()) text += fmt::format(" with {}", fmt::join(named, ", "));
  if (needed.size() > named.size()) text += fmt::format(" and {} more features", needed.size() - named.size());
  return text;
}

std::string why_not_here(const artifact::Target& target) {
  if (is_for_another_architecture(target.triple))
    return fmt::format("its code is for {}, and this machine is {}", architecture_of(target.triple), kHostArchitecture);
  const std::vector<std::string> missing = runtime::missing_features(target.features, runtime::host_cpu_features());
  return missing.empty() ? "" : fmt::format("this processor lacks {}", fmt::join(missing, ", "));
}

}  // namespace headrace::tools
