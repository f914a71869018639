// The modules of the backend examplejson, which run graphs (graph_text.h).
#pragma once

#include <string>

#include "runtime/module.h"

namespace headrace::backends::examplejson {

inline constexpr const char* kModuleKind = "examplejson";

// Makes a module with a function for each subgraph of the text. A function takes the tensors of the inputs and of the
// output, DLTensor* or NDArray, and returns the output if that is an NDArray; any number of threads may call it.
// UserError as read_graph_text; at a call, for arguments that are not float32 tensors of the subgraph's shape on the
// CPU.
runtime::Module make_graph_module(const std::string& text);

// Registers the loaders of such modules, runtime.module.loadbinary_examplejson and loadfile_examplejson, and
// runtime.module.examplejson_module_create, which makes one of a text.
void register_loaders();

}  // namespace headrace::backends::examplejson
