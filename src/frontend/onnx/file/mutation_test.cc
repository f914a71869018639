// Hostile input: mutated model files are an error or a model, never a crash, a hang or a large allocation.
#include <gtest/gtest.h>

#include <chrono>

#include "base/mapped_file.h"
#include "frontend/onnx/file/read_model.h"
#include "frontend/onnx/file/tensor.h"
#include "kit/errors.h"
#include "kit/model_zoo.h"
#include "kit/mutate.h"
#include "kit/onnx_data.h"
#include "kit/options.h"

namespace headrace::onnx {
namespace {

// Reads a model and all that hangs on it.
void read_everything(const std::string& bytes) {
  Model model = read_model(std::as_bytes(std::span(bytes)), "mutated");
  TensorSource source(model);
  for (const TensorProto& tensor : model.graph.initializers) source.load(tensor);
  for (const Node& node : model.graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      for (const TensorProto& tensor : attribute.tensors) source.load(tensor);
    }
  }
}

std::vector<std::string> file_seeds() {
  std::vector<std::string> bytes = {kit::make_zoo_model("squeezenet1_1", {.resolution = 32, .classes = 2}),
                                    kit::make_zoo_model("mlp")};
  std::vector<kit::OnnxCase> cases = kit::find_onnx_cases();
  for (size_t i = 0; i < cases.size(); i += 20) {
    auto file = MappedFile::open(cases[i].model.string(), "model");
    bytes.emplace_back(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  }
  return bytes;
}

TEST(Mutation, NeverCrashes) {
  std::vector<std::string> valid = file_seeds();
  int errors = 0;
  int runs = kit::case_count(3000, 100000);
  for (int run = 0; run < runs; ++run) {
    kit::Random random(kit::options().seed.value_or(static_cast<uint64_t>(run)));
    std::string bytes = kit::mutate(valid[random.index(valid.size())], random);
    SCOPED_TRACE(::testing::Message() << "--seed=" << run);
    auto begin = std::chrono::steady_clock::now();
    errors += kit::user_error_of([&] { read_everything(bytes); }).empty() ? 0 : 1;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
  // Both outcomes must occur, or the mutations are too timid or too wild to test anything.
  EXPECT_GT(errors, runs / 10);
  EXPECT_LT(errors, runs * 95 / 100);
}

}  // namespace
}  // namespace headrace::onnx
