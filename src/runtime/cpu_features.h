// Features of processors, in LLVM's names: which of them this machine's has, and which a machine can be asked for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::runtime {

// Features that both the processor and the operating system support, sorted. Names that Headrace has no row for are
// never in it, so code that needs one is refused rather than run.
const std::vector<std::string_view>& host_cpu_features();

// Returns every feature that a runtime on the architecture ("x86_64", "aarch64") can test for, sorted; none for other
// architectures.
std::vector<std::string_view> known_cpu_features(std::string_view architecture);

// Returns the features of `needed` that are not in `available`, in their order.
std::vector<std::string> missing_features(std::span<const std::string> needed,
                                          std::span<const std::string_view> available);

}  // namespace headrace::runtime
