// libFuzzer entry: the ONNX reader, the importer and InferType on whatever the bytes say.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/file/read_model.h"
#include "relay/infer/infer_type.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const onnx::Model model = onnx::read_model(std::as_bytes(std::span(data, size)), "fuzzed");
    onnx::symbolic_dimensions(model);
    relay::infer_type(onnx::import_model(model).module);
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
