#include "artifact/manifest.h"

namespace headrace::artifact {

const Program* find_program(const Manifest& manifest, std::string_view name) {
  for (const Program& program : manifest.programs) {
    if (program.name == name) return &program;
  }
  return nullptr;
}

}  // namespace headrace::artifact
