// Reads the text form (print.h) of modules and expressions.
//
// Infix + - * / and == != < <= > >= are calls of add, subtract, multiply, divide, equal, ...; they bind as in C. A let
// variable is bound in its value too, so that a function can call itself; where an outer variable has the name, only in
// a value that is a `fn`. A symbol names one dimension throughout a top-level function; so does `n` in an inner
// function. Ops must be registered before (ops/all_ops.h).
//
//   import "prelude.rly"
//
// imports the types and functions of another text, once. Texts that come with Headrace are known by name (std_texts.h).
// Another name is a file, looked for beside an importing file and then in ParseOptions::import_paths; it must lie in or
// below one of these folders. Without such folders no file is imported: the program that reads an untrusted text
// decides which files that text may read.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

struct ParseOptions {
  // The data of meta[relay.Constant][i], for a text without a metadata block.
  const std::vector<NDArray>* weights = nullptr;
  // The texts (ir/virtual_device.h) of meta[VirtualDevice][i], for a text whose metadata block has none.
  const std::vector<std::string>* virtual_devices = nullptr;
  // The nodes of meta[KIND][i] of other kinds, by KIND, for a text whose metadata block has none of the kind.
  Map<std::string, Array<ObjectRef>> meta_nodes = {};
  // The folders that files are imported from.
  std::vector<std::string> import_paths = {};
  // A module whose functions, types, attributes and sources the text may use; the result contains them, too. It is not
  // changed. A text that redefines one of its names is refused.
  IRModule init_module = {};
};

// Parses a module. UserError that holds all errors of the text, each with source:line:column, the line and a caret.
// Every node has a span with `source_name`, and the module has the text in its source map. The text must start with
// #[version = "0.0.5"].
IRModule parse_module(std::string_view text, const std::string& source_name = "<text>",
                      const ParseOptions& options = {});
// Parses one expression, preceded by `free_var` lines for its free variables; the version line may be missing. A global
// name that no module defines gets a GlobalVar of its own. Imports are not allowed.
Expr parse_expr(std::string_view text, const std::string& source_name = "<text>", const ParseOptions& options = {});

// Adds the types and functions of a text to a module; the text comes with Headrace or is a file in one of
// `import_paths`. Existing definitions stay (IRModuleNode::import_from). UserError when there is no such text, with all
// errors of the text, or with a list of conflicting definitions; the module is unchanged then.
void import_text(const IRModule& module, const std::string& name, const ParseOptions& options = {});

}  // namespace headrace::relay
