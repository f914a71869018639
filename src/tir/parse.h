// Reads the text form (print.h) of modules of PrimFuncs.
//
// Does not fold or rewrite anything. A name may be bound again after the scope of its first binding ends, and is then
// the same variable; it may not be bound again inside that scope.
#pragma once

#include "ir/module.h"
#include "tir/stmt.h"

namespace headrace::tir {

// Parses a module. UserError that holds all errors of the text, each with source:line:column, the line and a caret.
// Statements and functions have spans with `source_name`. The text must start with #[tir_version = "1"]. At most 600
// statements nest, and 300 parentheses.
IRModule parse_module(std::string_view text, const std::string& source_name = "<text>");
// Parses a text with one function; UserError when there is another number of them.
PrimFunc parse_function(std::string_view text, const std::string& source_name = "<text>");
// Returns whether a text is one of tir: its first token is that version line.
bool is_tir_text(std::string_view text);

}  // namespace headrace::tir
