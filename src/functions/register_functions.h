// Registers the global functions, which other languages call by name. There is one explicit list for each topic; the
// functions convert their arguments and call what other rooms offer.
#pragma once

namespace headrace::functions {

// Registers everything that a process with a compiler offers by name, after driver::register_all(), which it calls:
// ops, passes, types, and the functions below. Does nothing when it was called before. A new pass or op needs no line
// here: passes are registered as "relay._transform.NAME" from all_passes(), and ops are read from their registry.
void register_functions();

void register_ir_functions();           // object graphs, modules, ops
void register_tir_functions();          // scalar expressions, compute forms, loop programs
void register_target_functions();       // targets, their kinds and tags
void register_relay_functions();        // text, types, walks, analyses
void register_interpreter_functions();  // the reference interpreter
void register_transform_functions();    // passes, contexts, instruments
void register_build_functions();        // compiling modules
void register_op_functions();           // registering ops, attributes of ops
void register_pattern_functions();      // dataflow patterns

}  // namespace headrace::functions
