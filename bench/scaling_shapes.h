// The shapes of programs over which `headrace-bench scaling` measures how time grows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::bench {

struct ScalingShape {
  const char* name;
  int64_t size;  // size of the smaller program; the other is twice as large
  std::string (*text)(int64_t size);
};

// Returns the shapes. Each makes a module's text of `size` repetitions of one thing, with a function `main`.
const std::vector<ScalingShape>& scaling_shapes();

}  // namespace headrace::bench
