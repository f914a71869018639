// Questions that split a case of branch and bound (branch_and_bound.h) in two.
#pragma once

#include "plan/pipeline/narrow_ranges.h"

namespace headrace::plan {

// About a unit: does it lie below the stage? About a tensor: does no consumer of it lie in the stage?
struct Question {
  int32_t unit = -1;
  int32_t tensor = -1;
  int32_t stage = 0;
};

// Restricts the ranges of the unit or of the tensor's consumers; those of other units are as before.
void restrict_to_answer(const SplitGraph& graph, const Question& question, bool is_yes, StageRanges& ranges);

// Returns the questions worth asking about a case. None when each unit has one stage.
//
// The first is about the unit and the border whose two answers decide about many other units: with a unit below a
// border is all that it depends on. Where such a unit is left that decides about a large part of all units, it is the
// only question. Otherwise there is one for each border, and some about the tensors of the longest transfers.
std::vector<Question> make_questions(const SplitGraph& graph, const RangeNarrower& narrower, const StageRanges& ranges,
                                     int64_t period_ns);

}  // namespace headrace::plan
