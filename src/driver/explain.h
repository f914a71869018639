// Explains where the ops of a model would run, without a compile of it.
#pragma once

#include "driver/compile.h"
#include "partition/placement/by_cost.h"
#include "partition/place.h"
#include "partition/plan_file/plan.h"
#include "partition/program_graph.h"

namespace headrace::driver {

// Where each op would run.
struct Explanation {
  std::vector<artifact::Placement> placement;  // in the order of evaluation
  std::vector<partition::Region> regions;
  partition::ProgramGraph graph;        // with the model's names of inputs and outputs
  std::vector<pass::PassNote> notes;    // work that passes left undone, with reasons
  std::optional<partition::Plan> plan;  // if it was asked for
  // Where there are backends: what the plan costs, also one that costs did not decide. Otherwise why that is not known.
  std::optional<partition::PlanCost> plan_cost;
  std::string cost_failure;
  bool is_by_cost = false;                                  // costs decided
  std::vector<std::vector<partition::LabelSeconds>> costs;  // each row's, if costs decided (partition::PlacedModule)
  int64_t fewest_regions = 0;  // no choice of regions for these ops has fewer, beside those that the program marks
};

// Places the model as a compile with these options does. A backend may still refuse a region when it compiles it.
// Throws as compile_to_file, for what these stages find.
// `with_plan`: also makes the plan of it, which a program without a text form has not.
Explanation explain(const Model& model, const CompileOptions& options, bool with_plan = false);

// Returns the model's program as a compile with these options places it, after the canonical passes: each region is a
// global function that is marked Compiler. A compile of it without backends in its options has the same regions; one
// that a backend refuses is an error then, because the program asks for it. Throws as explain.
IRModule partition_module(const Model& model, const CompileOptions& options);

}  // namespace headrace::driver
