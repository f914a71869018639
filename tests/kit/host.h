// A host of bare artifacts (headrace/c_api.h) that allocates nothing and has one thread; it records messages.
#pragma once

#include <headrace/c_api.h>
#include <headrace/kernel_abi.h>

#include <span>

namespace headrace::kit {

// Makes a host whose `message` receives the sentence of a failure.
inline HeadraceHost host_with_message(std::span<char> message) {
  return {.size = sizeof(HeadraceHost),
          .version = HR_KERNEL_ABI_VERSION,
          .allocate = nullptr,
          .release = nullptr,
          .parallel_for = nullptr,
          .num_workers = 1,
          .context = nullptr,
          .message = message.data(),
          .message_size = message.size()};
}

}  // namespace headrace::kit
