// AnnotateSpans: every node gets as its span the place where it stands in the program's own text.
//
//   a program that was built, or rewritten until its spans point to what is long gone
//     ->  the same program; its spans are GeneratedSource:LINE:COLUMN in what print_module gives of it
//
// For messages that show a place in a program that no file holds: print the program, run this pass, and errors point
// into that text. The program is printed and read back; constants are not written out. Names of variables that the text
// must tell apart (%x, %x_1) become part of the program. Functions that are not relay's have no text here: UserError. A
// program that has these spans already is left alone. Needs no types. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kGeneratedSource = "GeneratedSource";

IRModule annotate_spans(const IRModule& module);

}  // namespace headrace::passes
