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

void MemoryUse::add_weight(std::span<const std::byte> read) {
  for (std::span<const std::byte>& known : weights) {
    if (known.data() != read.data()) continue;
    if (known.size() < read.size()) known = read;
    return;
  }
  weights.push_back(read);
}

int64_t MemoryUse::total_bytes() const {
  int64_t bytes = working_bytes;
  for (const std::span<const std::byte> weight : weights) bytes += static_cast<int64_t>(weight.size());
  return bytes;
}

}  // namespace headrace::executors
