// The first stage of a compile: what a program must be, and the passes before placement.
#pragma once

#include "driver/compile.h"

namespace headrace::driver {

using ModuleCheck = std::function<void(const IRModule&)>;

// Makes the context of passes: that of the options, with their threads, and with `verify` after each pass if the
// options ask for it.
pass::PassContext make_context(const CompileOptions& options, ModuleCheck verify);
// Makes the context of passes on Relay, which gives `note` what they leave undone.
pass::PassContext make_relay_context(const CompileOptions& options, pass::NoteSink note);

// Infers types, checks the program before the compile spends time on it, and runs the canonical passes.
IRModule run_canonical_passes(IRModule module, const pass::PassContext& context);

}  // namespace headrace::driver
