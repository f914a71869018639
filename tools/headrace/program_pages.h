// The pages of programs and libraries that a process holds in memory.
#pragma once

#include <cstdint>

namespace headrace::tools {

// Returns the pages of program and library files to the system, and says how many bytes that were. The dynamic linker
// and static constructors read far more of LLVM than a compile does, and read pages stay in a process until it ends.
// Pages in use come back from the system's cache when they are next read. Mappings that hold a page of this process
// alone, such as a relocated one or one with a breakpoint, stay. Does nothing on systems without /proc/self/smaps.
int64_t return_program_pages();

}  // namespace headrace::tools
