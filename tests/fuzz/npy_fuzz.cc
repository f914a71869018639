// libFuzzer entry: .npy files. An array that is read has the bytes of its shape; written, it reads back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "tools/npy.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tools::NpyArray array = tools::parse_npy({reinterpret_cast<const std::byte*>(data), size}, "fuzz.npy");
    const tools::NpyArray again = tools::parse_npy(tools::encode_npy(array), "again.npy");
    if (again.kind != array.kind || again.shape != array.shape || again.bytes != array.bytes) std::abort();
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
