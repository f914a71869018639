// The text of `headrace --version`.
#pragma once

#include <string>

namespace headrace::tools {

// Returns lines with the versions of Headrace, of the code generator's LLVM and of artifacts, and with the targets and
// backends of this build. A missing code generator is said, not thrown.
std::string describe_version();

}  // namespace headrace::tools
