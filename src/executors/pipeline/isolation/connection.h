// Connections between a pipeline and the process of a stage.
#pragma once

#include "executors/pipeline/futex.h"
#include "executors/pipeline/isolation/message.h"

namespace headrace::executors::pipeline::isolation {

enum class Received : uint8_t { message, timeout, ended, malformed };

// Waits for a message until then; it is `ended` when the other side has closed the connection.
Received receive(int connection, Message& message, Until until) noexcept;
// Returns false when the other side has closed the connection.
bool send(int connection, const Message& message) noexcept;

}  // namespace headrace::executors::pipeline::isolation
