// The Python in which the program runs what it does not do itself: other runtimes, and the decoding of images.
#pragma once

#include <string>

namespace headrace::tools {

// Returns HEADRACE_PYTHON, else "python3".
std::string python_program();

}  // namespace headrace::tools
