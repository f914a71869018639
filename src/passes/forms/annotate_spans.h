// AnnotateSpans: every node gets its place in the program's own text as its span.
//
//   a program that was built, or rewritten until its spans are stale
//     ->  the same program; its spans are GeneratedSource:LINE:COLUMN in the text of print_module
//
// For messages about a program that is in no file: print the program, run this pass, and errors point into that text.
// The program is printed and read back; constants are not written out. Names that the text must tell apart (%x, %x_1)
// become part of the program. UserError for functions that are not relay's, which have no text here. A program that has
// these spans already stays as it is. Needs no types. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kGeneratedSource = "GeneratedSource";

IRModule annotate_spans(const IRModule& module);

}  // namespace headrace::passes
