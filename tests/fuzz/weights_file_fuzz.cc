// libFuzzer entry: weights beside the text form. Every element of a tensor that is read can be touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "relay/text/weights_file.h"

using namespace headrace;

namespace {

uint64_t sum_of_bytes(const NDArray& array) {
  uint64_t sum = 0;
  for (const std::byte byte : array.bytes()) sum += static_cast<uint64_t>(byte);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int descriptor = memfd_create("weights", 0);
  if (descriptor < 0 || write(descriptor, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    volatile uint64_t sum = 0;
    for (const NDArray& array : relay::read_weights("/proc/self/fd/" + std::to_string(descriptor)))
      sum = sum + sum_of_bytes(array);
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  close(descriptor);
  return 0;
}
