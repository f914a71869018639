// The global functions: what other languages call by name. One explicit list a concern.
#pragma once

namespace headrace::driver {

// Registers them all; register_all() calls it once. A new pass or op needs no line here: passes are registered as
// "relay._transform.NAME" from their list, ops are read from their registry.
void register_functions();

void register_ir_functions();         // object graphs, modules, ops, targets
void register_tir_functions();        // scalar expressions, compute forms, loop programs
void register_relay_functions();      // text, types, walks, analyses, the interpreter
void register_transform_functions();  // passes, contexts, instruments
void register_build_functions();      // from a module to code
void register_op_functions();         // ops of users, attributes of ops

}  // namespace headrace::driver
