// libFuzzer entry: manifests. Accepted input keeps the rules: it is written again, and reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "artifact/manifest_json.h"
#include "base/error.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text =
        artifact::write_manifest(artifact::read_manifest({reinterpret_cast<const char*>(data), size}));
    if (artifact::write_manifest(artifact::read_manifest(text)) != text) std::abort();
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
