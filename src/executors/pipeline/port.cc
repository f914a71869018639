#include "executors/pipeline/port.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headrace::executors::pipeline {

std::string type_text(const Port& port) {
  if (port.is_any) return "any value";
  return fmt::format("{} ({})", port.spec.dtype, fmt::join(port.spec.shape, ", "));
}

bool fits(const Port& from, const Port& to) {
  if (from.is_any || to.is_any) return true;
  return from.spec.dtype == to.spec.dtype && from.spec.shape == to.spec.shape;
}

}  // namespace headrace::executors::pipeline
