// Processor architectures by the names that begin LLVM's triples: "x86_64", "aarch64".
#pragma once

#include <string_view>

namespace headrace {

#if defined(__x86_64__)
inline constexpr std::string_view kHostArchitecture = "x86_64";
#elif defined(__aarch64__)
inline constexpr std::string_view kHostArchitecture = "aarch64";
#else
#error "Headrace knows the architectures x86-64 and AArch64; add a row for this one here and in artifact/elf_file.cc"
#endif

// Returns the architecture of a triple: "aarch64" for "aarch64-unknown-linux-gnu".
constexpr std::string_view architecture_of(std::string_view triple) { return triple.substr(0, triple.find('-')); }

// Returns whether code for the triple is for a known architecture that is not this machine's. Artifacts that were
// sealed by hand may have no such triple; nothing is said of those.
constexpr bool is_for_another_architecture(std::string_view triple) {
  const std::string_view architecture = architecture_of(triple);
  return architecture != kHostArchitecture && (architecture == "x86_64" || architecture == "aarch64");
}

}  // namespace headrace
