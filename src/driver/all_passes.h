// Every pass by its name: what `headrace-opt` and Python look passes up in.
#pragma once

#include "pass/pass.h"

namespace headrace::driver {

enum class Ir : uint8_t { relay, tir };

// Of relay: InferType, then those of the canonical and the native list and those that run by name, each as it runs by
// its name (passes/pipeline.h); of tir: those of the kernel list. In the order of the lists.
const std::vector<pass::Pass>& all_passes(Ir ir = Ir::relay);

// The pass of that name in any spelling; UserError that lists the names when there is none.
const pass::Pass& get_pass(std::string_view name, Ir ir = Ir::relay);

// The passes of a comma-separated list, in which `canonical` and `native` (of relay) and `kernel` (of tir) stand for
// those lists.
struct PassList {
  std::vector<pass::Pass> passes;
  std::vector<std::string> named;  // those that were asked for by their own name: they run at every level
};
PassList parse_pass_list(std::string_view text, Ir ir = Ir::relay);

}  // namespace headrace::driver
