// Finds the part of an axis where a guard is always true, so that loops need no test there.
#pragma once

#include "lower/stages/flat_stage.h"

namespace headrace::lower {

// Elements begin .. end - 1 of the last axis, and the stage's value there.
struct Interior {
  int64_t begin = 0, end = 0;
  PrimExpr value;
};

// Returns the interior of a stage whose value is if_then_else(a <= x + .. and x + .. < b and .., inside, outside), such
// as a padded copy: the part of the last axis x where the conditions on x hold for all values of the other axes. The
// other conditions stay in the value. Returns nothing when the value has another form or that part has fewer than
// `least` elements.
std::optional<Interior> find_interior(const FlatStage& stage, int64_t least);

}  // namespace headrace::lower
