// Converts Headrace's graphs to oneDNN networks, and says what the backend does not support.
#pragma once

#include <headrace/backend_abi.h>

#include <optional>
#include <string>

#include "backends/onednn/network.h"

namespace headrace_onednn {

// The reason for a refusal.
struct No {
  int32_t reason = HR_REASON_OP_UNSUPPORTED;
  std::string message;  // completes a sentence whose subject is the op: "is not of float32"
};

// The patterns of the backend, in the text form of backend_abi.h.
extern const char* const kPatterns;

// Returns why the backend does not support the call `node`; nothing when it does.
std::optional<No> find_fault(const hr_graph_api& api, const hr_graph* graph, uint32_t node);

// Returns why the backend does not support `match`, a match of the named pattern; nothing when it does.
std::optional<No> find_fault_in_match(const hr_graph_api& api, const std::string& pattern, const hr_graph* match);

// Converts a region into `network`, which must be empty. Returns the reason when it cannot; `network` is then
// unspecified.
std::optional<No> read_graph(const hr_graph_api& api, const hr_graph* graph, Network& network);

}  // namespace headrace_onednn
