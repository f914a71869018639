#include "executors/pipeline/port.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headrace::executors::pipeline {

std::string type_text(const Port& port) {
  std::string text =
      port.is_any ? "any value" : fmt::format("{} ({})", port.spec.dtype, fmt::join(port.spec.shape, ", "));
  if (port.spec.location != artifact::Location{}) text += " on " + to_string(port.spec.location);
  return text;
}

bool fits(const Port& from, const Port& to) {
  if (from.spec.location != to.spec.location) return false;
  if (from.is_any || to.is_any) return true;
  return from.spec.dtype == to.spec.dtype && from.spec.shape == to.spec.shape;
}

}  // namespace headrace::executors::pipeline
