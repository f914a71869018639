// Random functions of the loop IR, for properties that hold of all.
#pragma once

#include "kit/random.h"
#include "tir/stmt.h"

namespace headrace::kit {

// Returns a well-formed function of a few statements over a few buffers, of every kind of node that has a value; every
// index is within bounds, every element that is read was written. Not all of its loops have a meaning for a code
// generator.
tir::PrimFunc random_function(Random& random);

}  // namespace headrace::kit
