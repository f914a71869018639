#include "base/expected.h"

#include "base/exit_code.h"

namespace headrace {

void throw_refusal(const Refusal& refusal) {
  if (exit_code_of(refusal.code) == HR_MISSING_DEPENDENCY) throw MissingError(refusal.message);
  throw UserError(refusal.message);
}

}  // namespace headrace
