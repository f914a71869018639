// libFuzzer entry: object graphs from JSON. What is read is written again, and reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "object/json.h"
#include "ops/all_ops.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ops::register_all_ops();
  try {
    const std::string text = save_json(load_json({reinterpret_cast<const char*>(data), size}));
    if (save_json(load_json(text)) != text) std::abort();
  } catch (const UserError&) {
    // What bad input must give.
  }
  return 0;
}
