// An instrument that checks that the text form and JSON of a program read back as the same program.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Checks text before the first pass and after each pass that changed the program: prints twice (the texts must be
// equal), reads the text back and compares (object/structural_equal.h). Data of constants is kept beside the text, each
// content once. Checks JSON, which holds the data, before the first pass and after the last. InternalError naming the
// pass and the first difference. All functions must be relay's or all tir's. Costs several times as much as the passes.
std::shared_ptr<PassInstrument> make_round_trip_instrument();

}  // namespace headrace::pass
