// A strict look at a relocatable object before the linker sees it.
#pragma once

#include "codegen/native.h"

namespace headrace::codegen {

// lld trusts its input: a damaged object can make it read outside of its memory. UserError unless `object` is a 64-bit
// little-endian ELF relocatable file for `target` whose headers, symbols and relocations all point inside of it, and
// that uses no more than plain compiled code does (no groups, no thread-local data, no compressed sections).
void check_object(const ObjectCode& object, const NativeTarget& target);

}  // namespace headrace::codegen
