// The names of a relay program in text.
#pragma once

#include "ir/type_text.h"

namespace headrace::relay {

// Whether a call of an op of that name reads back as it prints: a word, or words with dots between them, that means
// nothing else.
bool can_name_op(std::string_view text);
// What old text calls the op that takes a shape (or slices, sizes, widths) as an argument: here that is the op itself,
// without "dyn."; some have as attributes what was an argument (dyn_operands.h).
std::string_view without_dyn(std::string_view op);
// Whether it begins with a number that is a word: nan, inf, with a suffix or not.
bool reads_as_number(std::string_view text);

// The names of one top-level function.
struct PrintNames : TypeNames {
  NameTable vars;
};

}  // namespace headrace::relay
