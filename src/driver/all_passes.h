// Finds passes by name, for `headrace-opt` and Python.
#pragma once

#include "cost/machine.h"
#include "pass/pass.h"

namespace headrace::driver {

enum class Ir : uint8_t { relay, tir };

// Returns all passes over an IR, in the order of their lists. For relay: InferType, the canonical list, the native list
// and the passes that run by name only (passes/pipeline.h). For tir: the kernel list. If a pass does more by name than
// in a build, the list has the form by name. For example, SimplifyInference by name also replaces norms that a build
// leaves to their kernels, such as nn.layer_norm. Passes that see a machine are here for the one that cost::Machine
// describes by default, of vectors of 256 bits.
const std::vector<pass::Pass>& all_passes(Ir ir = Ir::relay);

// Returns the pass with that name or alias. Throws UserError that lists the names if there is none.
const pass::Pass& get_pass(std::string_view name, Ir ir = Ir::relay);

// Makes all passes, their options and the op attributes that they read known to contexts. register_all() calls it once.
void declare_passes();

// The passes that a comma-separated list selects. `canonical` and `native` (for relay) and `kernel` (for tir) stand for
// the whole lists of these names.
struct PassList {
  std::vector<pass::Pass> passes;
  std::vector<std::string> named;  // the passes selected by their own names, which run at every optimization level
};
// Passes that see a machine are those for `machine`. Throws UserError as get_pass.
PassList parse_pass_list(std::string_view text, Ir ir = Ir::relay, const cost::Machine& machine = {});

}  // namespace headrace::driver
