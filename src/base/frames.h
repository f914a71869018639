// Records the C++ functions that an InternalError was thrown in, for the messages that report it.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

class Error;

// Returns the functions on the calling thread's stack, without the innermost `skipped` ones. The oldest comes first,
// one a line under a heading: "libheadrace.so+0x1f40 headrace::relay::verify(...)+0x32". The offset identifies a
// function that has no dynamic name (addr2line -e libheadrace.so 0x1f40). Frames of the Python interpreter are one
// line. Reads the symbol table, so call it for internal errors only.
std::string calling_frames(int skipped);

// Returns the frames that `error` recorded, with their heading; empty when it recorded none.
std::string_view frames_of(const Error& error);

}  // namespace headrace
