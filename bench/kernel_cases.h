// The shapes that kernels are measured on, which take most of the time of whole networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::bench {

struct KernelCase {
  std::string name;
  std::string program = {};  // relay text; every operand is an input, so that nothing is folded
  double operations = 0;
  int64_t bytes = 0;  // each input read once, the output written once
};

std::vector<KernelCase> kernel_cases();

}  // namespace headrace::bench
