#include "executors/executor.h"

#include "base/error.h"
#include "object/foreign_error.h"

namespace headrace::executors {

void throw_if_failed(const Status& status) {
  if (status.ok()) return;
  // An exception of another language stays whole, so that its language can raise it again.
  if (status.error && status.error->payload)
    throw ForeignError(status.error->kind, status.error->message, status.error->payload);
  throw UserError(std::string(status.message), {.op = std::string(status.op), .place = ""});
}

}  // namespace headrace::executors
