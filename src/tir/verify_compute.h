// The rules that a compute form keeps. They are checked along the form: the inputs, each stage in turn, the outputs,
// then symbols and loops of the whole.
//   1. no part is null; inputs are different dense buffers of scalar numbers, and outputs are different buffers that
//      stages write;
//   2. a stage has as many axes as extents, int64 all, and as many places as its output has dimensions; a check has no
//      output, a bool as its value, and no reduction;
//   3. a reduction has a combiner, as many axes as extents, and starts from a constant: of a sum 0, of a product 1; an
//      epilogue comes with the variable that stands for the combined value; what is written has the output's dtype;
//   4. a stage reads inputs and what earlier stages wrote; it writes no input, and no buffer that an earlier stage
//      wrote whole;
//   5. values are scalars; shapes and extents name symbols that are a dimension of an input or an output, and no axes;
//   6. the plain loops that the form stands for (plain_loops.h) are well-formed (verify.h): variables are bound, ranks
//      and dtypes fit.
// Linear in the size of the form.
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

// Returns the first breach, in that order, with its stage; nothing when the form keeps the rules.
std::optional<std::string> find_breach(const Compute& compute);
// Throws a UserError with the first breach, if there is one.
void verify(const Compute& compute);

}  // namespace headrace::tir
