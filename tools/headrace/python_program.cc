#include "tools/headrace/python_program.h"

#include <cstdlib>

namespace headrace::tools {

std::string python_program() {
  const char* chosen = std::getenv("HEADRACE_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

}  // namespace headrace::tools
