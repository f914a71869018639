#include "tools/headrace/pass_note.h"

namespace headrace::tools {

std::string to_text(const pass::PassNote& note) {
  const std::string place = note.span ? fmt::format(" at {}", to_string(note.span)) : "";
  return fmt::format("note: {}{}: {} (reason {})", note.pass, place, note.message, static_cast<int>(note.reason));
}

}  // namespace headrace::tools
