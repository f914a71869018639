#include "tools/headrace/pass_note.h"

namespace headrace::tools {

std::string to_text(const pass::PassNote& note) {
  const std::string place = note.span ? fmt::format(" at {}", to_string(note.span)) : "";
  return fmt::format("note: {}{}: {}", note.pass, place, note.message);
}

}  // namespace headrace::tools
