// The table of functions, by hosts that fail and by old ones.
#include <gtest/gtest.h>
#include <headrace/backend_abi.h>

#include <stdexcept>
#include <string>

extern "C" int32_t headrace_backend_entry(const hr_host* host, hr_backend* backend, const hr_message* message);

namespace headrace_onednn {
namespace {

// Returns the backend as the entry fills it in for a host.
hr_backend backend_for(const hr_host& host) {
  hr_backend backend{};
  HR_FILL_ABI(hr_backend, &backend);
  EXPECT_EQ(headrace_backend_entry(&host, &backend, nullptr), 0);
  return backend;
}

// A backend that fails where it is asked about a call must not look like one that does not take it.
TEST(Entry, AnExceptionIsAFailureAndNoRefusal) {
  hr_graph_api graph{};
  HR_FILL_ABI(hr_graph_api, &graph);
  graph.num_operands = [](const hr_graph*, uint32_t) -> uint32_t { throw std::runtime_error("the graph is gone"); };
  graph.num_outputs = [](const hr_graph*) -> uint32_t { throw std::runtime_error("the match is gone"); };
  hr_host host{};
  HR_FILL_ABI(hr_host, &host);
  host.graph = &graph;
  const hr_backend backend = backend_for(host);
  char text[64] = {};
  hr_verdict verdict{.reason = HR_REASON_NONE, .message = {.data = text, .size = sizeof text}};
  backend.supports(backend.self, nullptr, 0, &verdict);
  EXPECT_EQ(verdict.reason, HR_REASON_BACKEND_FAILED);
  EXPECT_STREQ(text, "the graph is gone");
  backend.accepts(backend.self, "onednn.gelu", nullptr, &verdict);
  EXPECT_EQ(verdict.reason, HR_REASON_BACKEND_FAILED);
  EXPECT_STREQ(text, "the match is gone");
}

// A host of minor version 0 has no room in its request for blobs whose constants it keeps.
TEST(Entry, AHostThatKeepsNoConstantsIsRefused) {
  hr_host host{};
  HR_FILL_ABI(hr_host, &host);
  const hr_backend backend = backend_for(host);
  hr_compile_request request{};
  request.abi = {.size = offsetof(hr_compile_request, emit_with_constants), .major = 1, .minor = 0};
  char text[96] = {};
  const hr_message message{.data = text, .size = sizeof text};
  EXPECT_NE(backend.compile(backend.self, &request, &message), 0);
  EXPECT_STREQ(text, "this Headrace is too old for the backend: it keeps no constants beside a blob");
}

// Kept costs are outdated where the whole version differs; blobs are where its first number does.
TEST(Entry, ARaisedVersionOfCostsLeavesBlobsAlone) {
  hr_host host{};
  HR_FILL_ABI(hr_host, &host);
  const hr_backend backend = backend_for(host);
  EXPECT_EQ(std::string(backend.version).rfind("2, costs 2, oneDNN ", 0), 0u) << backend.version;
  EXPECT_EQ(backend.accepts_version(backend.self, "2, oneDNN 2.6.3", nullptr), 0);
  EXPECT_EQ(backend.accepts_version(backend.self, "2, costs 1, oneDNN 3.0.0", nullptr), 0);
  EXPECT_NE(backend.accepts_version(backend.self, "1, costs 2, oneDNN 2.6.3", nullptr), 0);
}

}  // namespace
}  // namespace headrace_onednn
