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

// Returns the cases: convolutions as written, and with `block` channels in a block unless it is 1; dense products.
std::vector<KernelCase> kernel_cases(int64_t block);

}  // namespace headrace::bench
