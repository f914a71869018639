// The instrument that holds the text form and JSON to their word: both read back as the program they were written from.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Before the first pass and after each that changed the program: prints it twice (equal texts), reads the text back and
// compares (object/structural_equal.h). Data of constants lies beside the text, each content once. The same for JSON
// before the first pass and after the last: it holds the data. InternalError naming the pass and the first difference.
// The functions are all relay's or all tir's. Costs several times the passes.
std::shared_ptr<PassInstrument> make_round_trip_instrument();

}  // namespace headrace::pass
