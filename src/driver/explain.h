// The first stages of a compile, up to placement, and an explanation of what they decide.
#pragma once

#include "driver/compile.h"
#include "partition/by_cost.h"
#include "partition/place.h"
#include "partition/plan.h"
#include "partition/program_graph.h"

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

// Where each op would run, without a compile of it.
struct Explanation {
  std::vector<artifact::Placement> placement;  // in the order of evaluation
  std::vector<partition::Region> regions;
  partition::ProgramGraph graph;        // with the model's names of inputs and outputs
  std::vector<pass::PassNote> notes;    // work that passes left undone, with reasons
  std::optional<partition::Plan> plan;  // if it was asked for
  // Only of a placement by cost: what the plan costs, and the costs of the rows (partition::PlacedModule).
  std::optional<partition::PlanCost> plan_cost;
  std::vector<std::vector<partition::LabelSeconds>> costs;
};

// Places the model as a compile with these options does. A backend may still refuse a region when it compiles it.
// Throws as compile_to_file, for what these stages find.
// `with_plan`: also makes the plan of it, which a program without a text form has not.
Explanation explain(const Model& model, const CompileOptions& options, bool with_plan = false);

}  // namespace headrace::driver
