// libFuzzer entry: the ONNX reader, the data of every tensor that it finds, and the model with other initialisers.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "frontend/onnx/file/read_model.h"
#include "frontend/onnx/file/tensor.h"
#include "frontend/onnx/file/with_initializers.h"

using namespace headrace;

namespace {

void load_all(onnx::TensorSource& source, const std::vector<onnx::TensorProto>& tensors) {
  for (const onnx::TensorProto& tensor : tensors) source.load(tensor);
}

// The first initialiser holds a tensor of ours and the second is left out, where the bytes have that many.
void change_initializers(std::span<const std::byte> bytes, const onnx::Model& model) {
  std::map<std::string, NDArray, std::less<>> replaced;
  std::set<std::string, std::less<>> dropped;
  const std::vector<onnx::TensorProto>& tensors = model.graph.initializers;
  if (!tensors.empty()) replaced.emplace(tensors[0].name, NDArray::zeros({2, 3}, DataType::float_(32)));
  if (tensors.size() > 1) dropped.emplace(tensors[1].name);
  const std::string changed = onnx::with_initializers(bytes, "fuzzed", replaced, dropped);
  onnx::read_model(std::as_bytes(std::span(changed)), "changed");
}

// Bad input must give a UserError.
template <typename Call>
void run(Call&& call) {
  try {
    call();
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  run([&] { onnx::with_initializers(bytes, "fuzzed", {}, {}); });
  run([&] {
    const onnx::Model model = onnx::read_model(bytes, "fuzzed");
    run([&] { change_initializers(bytes, model); });
    onnx::TensorSource source(model);
    load_all(source, model.graph.initializers);
    for (const onnx::Node& node : model.graph.nodes) {
      for (const onnx::Attribute& attribute : node.attributes) load_all(source, attribute.tensors);
    }
  });
  return 0;
}
