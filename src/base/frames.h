// The C++ functions that an InternalError was thrown in, for who reports it.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

class Error;

// The functions that the calling thread is in but for the innermost `skipped` ones, oldest first, a line each under a
// heading: "libheadrace.so+0x1f40 headrace::relay::verify(...)+0x32". The offset tells a function without a dynamic
// name (addr2line -e libheadrace.so 0x1f40). What the interpreter of Python does is one line. Costs what reading the
// symbol table costs; not for errors that users make.
std::string calling_frames(int skipped);

// Those that `error` shows, heading included; empty for one without.
std::string_view frames_of(const Error& error);

}  // namespace headrace
