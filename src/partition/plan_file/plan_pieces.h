// The split of a program that a plan has rows for.
#pragma once

#include "partition/instances.h"
#include "partition/plan_file/plan_names.h"

namespace headrace::partition {

// Returns the program, whose names these are, with the pieces as calls that the plan lists: matches of patterns of the
// backends, and composite functions of the program itself; those that it does not list are broken up. A piece is known
// by its pattern and its parts. `refusals` gets the matches that backends refuse. UserError at the row, or at the part
// in it, for an op that the program does not have, for parts that no pattern of that name matches together, and for an
// op that two rows of patterns replace.
IRModule split_of_plan(const Plan& plan, const PlanNames& names, const IRModule& program, const Backends& backends,
                       PatternRefusals& refusals);

}  // namespace headrace::partition
