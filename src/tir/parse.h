// Reads the text form (print.h) of modules of PrimFuncs.
//
// Nothing is folded or rewritten: what is read is what is written. A name may be bound again where the one before it
// ended, and is one variable then; not inside its own scope.
#pragma once

#include "ir/module.h"
#include "tir/stmt.h"

namespace headrace::tir {

// UserError that holds all errors of the text, each with source:line:column, the line and a caret. Statements and
// functions have spans with `source_name`. The text must start with #[tir_version = "1"]. At most 600 statements nest,
// and 300 parentheses.
IRModule parse_module(std::string_view text, const std::string& source_name = "<text>");
// The one function of the text; UserError when there is another number of them.
PrimFunc parse_function(std::string_view text, const std::string& source_name = "<text>");
// Returns whether a text is one of tir: its first token is that version line.
bool is_tir_text(std::string_view text);

}  // namespace headrace::tir
