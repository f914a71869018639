// libFuzzer entry: object graphs from JSON. Accepted input is written again, and reads back to the same text; a module
// that keeps the rules of the IR prints and gets types, or errors.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "object/json.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/print.h"
#include "relay/verify.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ops::register_all_ops();
  try {
    const std::string text = save_json(load_json({reinterpret_cast<const char*>(data), size}));
    const Value again = load_json(text);
    if (save_json(again) != text) std::abort();
    if (!again.is<IRModule>() || again.is_none()) return 0;
    relay::verify(again.as<IRModule>());
    relay::print_module(again.as<IRModule>());
    relay::infer_type(again.as<IRModule>());
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
