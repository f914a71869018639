#include "executors/executor.h"

#include <algorithm>
#include <map>

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

int64_t memory_bytes(std::span<const std::shared_ptr<Executor>> executors) {
  int64_t bytes = 0;
  std::map<const std::byte*, size_t> weights;  // bytes read, by the first one
  for (const std::shared_ptr<Executor>& executor : executors) {
    bytes += executor->working_bytes();
    for (const std::span<const std::byte> weight : executor->weights()) {
      size_t& most = weights[weight.data()];
      most = std::max(most, weight.size());
    }
  }
  for (const auto& [first, nbytes] : weights) bytes += static_cast<int64_t>(nbytes);
  return bytes;
}

}  // namespace headrace::executors
