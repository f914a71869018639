// libFuzzer entry: tables of costs. An accepted table is written again, and reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "partition/placement/cost_table.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text =
        to_json(partition::parse_cost_table({{reinterpret_cast<const char*>(data), size}, "costs.json"}));
    if (to_json(partition::parse_cost_table({text, "again.json"})) != text) std::abort();
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
