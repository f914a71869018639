// Whole networks: the kit's models import and type, and the model that ships here reads its held-out images.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "frontend/onnx/tests/import_testing.h"
#include "kit/model_zoo.h"
#include "kit/options.h"
#include "kit/random.h"
#include "tools/npy.h"

namespace headrace::onnx {
namespace {

using namespace testing;

// A model of the kit in a file, so that its weights are mapped and not copied (VGG-16 has 550 MB of them).
class ZooFile {
 public:
  ZooFile(std::string_view name, const kit::ZooOptions& options)
      : path_(std::filesystem::path(::testing::TempDir()) / fmt::format("zoo_{}_{}.onnx", name, getpid())) {
    const std::string bytes = kit::make_zoo_model(name, options);
    std::ofstream(path_, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }
  ~ZooFile() { std::filesystem::remove(path_); }
  Model read() const { return read_model(path_.string()); }

 private:
  std::filesystem::path path_;
};

// Returns the options of the smallest picture that the model takes; a transformer has its small form besides.
kit::ZooOptions smallest(const kit::ZooModel& model) {
  kit::ZooOptions options = kit::small_zoo_options(model);
  options.resolution = model.smallest_resolution;
  return options;
}

// The ports that the header of the kit promises for `smallest`, and how the text of the program ends.
struct Ports {
  std::vector<std::string> inputs = {"x"};
  std::vector<std::string> outputs = {"y"};
  std::string end;
};

Ports ports_of(const kit::ZooModel& model, std::string_view batch, int64_t classes) {
  if (model.is_detector) return {.outputs = {"boxes", "scores", "selected"}, .end = ", 3), int64])"};
  if (model.name == "bert_base") {
    return {.inputs = {"input_ids", "token_type_ids", "attention_mask"},
            .outputs = {"last_hidden_state", "pooled"},
            .end = fmt::format("-> (Tensor[({0}, 16, 128), float32], Tensor[({0}, 128), float32])", batch)};
  }
  if (model.name == "gpt2") {
    return {.inputs = {"input_ids"},
            .outputs = {"logits"},
            .end = fmt::format("-> Tensor[({}, 16, 1000), float32]", batch)};
  }
  return {.end = fmt::format("-> Tensor[({}, {}), float32]", batch, classes)};
}

TEST(ImportModels, EveryModelOfTheKitTypes) {
  for (const kit::ZooModel& model : kit::zoo_models()) {
    SCOPED_TRACE(model.name);
    const ZooFile file(model.name, smallest(model));
    const ImportedModel imported = import_model(file.read());
    const Ports ports = ports_of(model, "1", model.classes);
    EXPECT_EQ(imported.inputs, ports.inputs);
    EXPECT_EQ(imported.outputs, ports.outputs);
    EXPECT_THAT(main_text(imported), ::testing::EndsWith(ports.end));
  }
}

TEST(ImportModels, ASymbolicBatchStaysSymbolic) {
  for (const kit::ZooModel& model : kit::zoo_models()) {
    SCOPED_TRACE(model.name);
    if (model.name == "vgg16" || model.name == "alexnet") continue;  // differ from the other test in sizes only
    kit::ZooOptions options = smallest(model);
    options.batch = 0;
    options.classes = 3;
    const ZooFile file(model.name, options);
    const Ports ports = ports_of(model, "N", 3);
    std::vector<std::string> open;
    for (const std::string& input : ports.inputs) open.push_back(input + "[0] (N)");
    EXPECT_EQ(symbolic_dimensions(file.read()), open);
    const std::string text = main_text(import_model(file.read()));
    if (model.is_detector) {
      EXPECT_THAT(text, ::testing::ContainsRegex(R"(Tensor\[\(N, [0-9]+, 4\), float32\], Tensor\[\(N, 2, [0-9]+\))"));
    } else {
      EXPECT_THAT(text, ::testing::EndsWith(ports.end));
    }
  }
}

TEST(ImportModels, ADetectorSelectsSomeBoxes) {
  const ZooFile file("ssd_mobilenet", {.resolution = 32});
  const ImportedModel imported = import_model(file.read());
  std::vector<float> picture(3 * 32 * 32);
  kit::Random(1).fill(picture, 0, 1);
  const NDArray x = NDArray::from_bytes({1, 3, 32, 32}, DataType::float_(32), std::as_bytes(std::span(picture)));
  const std::vector<NDArray> outputs = interp::run_main(imported.module, {x});
  ASSERT_EQ(outputs.size(), 3);
  EXPECT_GT(outputs[2].shape()[0], 5);
  EXPECT_LT(outputs[2].shape()[0], 300);
}

NDArray load_npy(const std::string& name, DataType dtype) {
  const tools::NpyArray array = tools::read_npy(HEADRACE_SOURCE_DIR "/models/" + name);
  return NDArray::from_bytes(array.shape, dtype, array.bytes);
}

// 40 of the 360 held-out images, 8 at test size few; onnxruntime, too, reads 357 of the 360 right (models/README.md).
TEST(ImportModels, DigitsReadsItsHeldOutImages) {
  const int64_t count = kit::options().size == kit::TestSize::kFew ? 8 : kit::by_size(40, 360);
  const NDArray images = load_npy("digits_images.npy", DataType::float_(32));
  const NDArray labels = load_npy("digits_labels.npy", DataType::int_(64));
  const Model model = read_model(HEADRACE_SOURCE_DIR "/models/digits.onnx");
  const ImportedModel imported = import_model(model, {.shapes = {{"x", {count, 1, 8, 8}}}, .bound = {}});
  const NDArray some = NDArray::from_bytes({count, 1, 8, 8}, images.dtype(),
                                           images.bytes().first(static_cast<size_t>(count) * 64 * sizeof(float)));
  const NDArray probabilities = interp::run_main(imported.module, {some}).at(0);
  ASSERT_EQ(probabilities.shape(), (Shape{count, 10}));
  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = probabilities.data<float>() + i * 10;
    right += std::max_element(row, row + 10) - row == labels.data<int64_t>()[i];
  }
  EXPECT_GE(right, count - 3);
}

}  // namespace
}  // namespace headrace::onnx
