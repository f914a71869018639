// The first stages of a compile, up to placement, and an explanation of what they decide.
#pragma once

#include "driver/compile.h"
#include "partition/place.h"

namespace headrace::driver {

using ModuleCheck = std::function<void(const IRModule&)>;
using NoteSink = std::function<void(const pass::PassNote&)>;

// Makes the context of passes: that of the options, with their threads, and with `verify` after each pass if the
// options ask for it.
pass::PassContext make_context(const CompileOptions& options, ModuleCheck verify);
// Makes the context of passes on Relay, which gives `note` what they leave undone.
pass::PassContext make_relay_context(const CompileOptions& options, NoteSink note);

// Checks the program, before the compile spends time on it, and runs the passes that come before placement.
IRModule run_canonical_passes(const IRModule& module, const pass::PassContext& context);

// Returns the backends that the options name. UserError for one that there is not.
partition::Backends chosen_backends(const CompileOptions& options);

// Places a program that has run through the canonical passes, as the options say. Placement by order does not read
// `target`. Throws as partition::place and
// chosen_backends.
partition::PlacedModule place(const IRModule& canonical, const CompileOptions& options,
                              const codegen::NativeTarget& target);

// Where each op would run, without a compile of it.
struct Explanation {
  std::vector<artifact::Placement> placement;  // in the order of evaluation
  std::vector<partition::Region> regions;
  std::vector<pass::PassNote> notes;  // what passes left undone
  // Only of a placement by cost: partition::PlacedModule says what they are.
  std::optional<partition::PlanCost> plan;
  std::vector<std::vector<partition::LabelSeconds>> costs;
};

// Places the model as a compile with these options does. A backend may still refuse a region when it compiles it.
// Throws as compile_to_file, for what these stages find.
Explanation explain(const Model& model, const CompileOptions& options);

}  // namespace headrace::driver
