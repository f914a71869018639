// Records the C++ functions that an InternalError was thrown in, for the messages that report it.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

class Error;

// Returns the functions on the calling thread's stack, without the innermost `skipped` ones: a heading, then a line for
// each, the oldest first: "libheadrace.so+0x1f40 headrace::relay::verify(...)+0x32". The first offset finds a function
// that the library's symbol table does not name: addr2line -e libheadrace.so 0x1f40. Neighbouring frames of the Python
// interpreter share one line. It reads symbol tables, which is slow: call it for internal errors only.
std::string calling_frames(int skipped);

// Returns the frames that `error` recorded, with their heading; empty when it recorded none.
std::string_view frames_of(const Error& error);

}  // namespace headrace
