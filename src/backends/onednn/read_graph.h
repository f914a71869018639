// Reads graphs of Headrace as networks, and so says what the backend takes.
#pragma once

#include <headrace/backend_abi.h>

#include <optional>
#include <string>

#include "backends/onednn/network.h"

namespace headrace_onednn {

// Why the backend does not take something.
struct No {
  int32_t reason = HR_REASON_OP_UNSUPPORTED;
  std::string message;  // the rest of a sentence that begins with the op
};

// The patterns of the backend, in the text form of backend_abi.h.
extern const char* const kPatterns;

// Returns why the backend does not take the call `node`; nothing when it does.
std::optional<No> find_fault(const hr_graph_api& api, const hr_graph* graph, uint32_t node);

// Returns why the backend does not take what the pattern of that name matched; nothing when it does.
std::optional<No> find_fault_in_match(const hr_graph_api& api, const std::string& pattern, const hr_graph* match);

// Reads a region into `network`, or returns why it cannot be.
std::optional<No> read_graph(const hr_graph_api& api, const hr_graph* graph, Network& network);

}  // namespace headrace_onednn
