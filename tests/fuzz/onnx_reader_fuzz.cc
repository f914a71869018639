// libFuzzer entry: the ONNX reader, and the data of every tensor that it finds.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "frontend/onnx/read_model.h"
#include "frontend/onnx/tensor.h"

using namespace headrace;

namespace {

void load_all(onnx::TensorSource& source, const std::vector<onnx::TensorProto>& tensors) {
  for (const onnx::TensorProto& tensor : tensors) source.load(tensor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    onnx::Model model = onnx::read_model(std::as_bytes(std::span(data, size)), "fuzzed");
    onnx::TensorSource source(model);
    load_all(source, model.graph.initializers);
    for (const onnx::Node& node : model.graph.nodes) {
      for (const onnx::Attribute& attribute : node.attributes) load_all(source, attribute.tensors);
    }
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
