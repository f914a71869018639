// Checks a relocatable object strictly before the linker reads it.
#pragma once

#include "codegen/native.h"

namespace headrace::codegen {

// Throws a UserError unless `object` is a 64-bit little-endian ELF relocatable file for `target` whose headers, symbols
// and relocations all point inside it. It may use only features of plain compiled code (no groups, no thread-local
// data, no compressed sections). lld trusts its input: a damaged object can make it read outside its memory.
void check_object(const ObjectCode& object, const NativeTarget& target);

// Returns the names of the functions and variables that an object gives to others. Throws as check_object() does.
std::vector<std::string> defined_symbols(const ObjectCode& object, const NativeTarget& target);

}  // namespace headrace::codegen
