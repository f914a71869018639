// The works that `headrace-bench scaling` does with each program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace headrace::bench {

struct ScalingProgram {
  std::string text;
  IRModule module;  // as parsed
  IRModule typed;   // null where inference refuses the program
};

struct ScalingWork {
  std::string name;
  bool needs_types;
  // Prepares the work, then passes the part to be measured to its argument.
  std::function<void(const ScalingProgram&, const std::function<void(const std::function<void()>&)>&)> run;
};

// Returns the works: text, JSON, comparisons, walks, inference, the interpreter; then every pass by its name, and the
// lists `canonical` and `native` one after the other.
const std::vector<ScalingWork>& scaling_works();

}  // namespace headrace::bench
