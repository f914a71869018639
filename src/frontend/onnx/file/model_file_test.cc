// ModelFile: large data of initialisers stays on disk until a tensor is loaded.
#include "frontend/onnx/file/model_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/import.h"
#include "frontend/onnx/file/read_model.h"
#include "frontend/onnx/file/tensor.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "kit/onnx_writer.h"

namespace headrace::onnx {
namespace {

using protozero::pbf_writer;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int64_t kLargeElements = 40'000;

std::vector<float> counted_floats(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.5F);
  return values;
}

// A TensorProto of float32 whose elements lie in one field.
std::string float_tensor(std::string_view name, uint32_t field, const std::vector<float>& values) {
  std::string bytes;
  pbf_writer writer(bytes);
  writer.add_int64(1, std::ssize(values));
  writer.add_int32(2, static_cast<int32_t>(ElementType::kFloat));
  writer.add_bytes(field, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  writer.add_string(8, name.data(), name.size());
  return bytes;
}

class ModelFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("model_file_{}", ::getpid());
    fs::create_directories(folder_);
    path_ = (folder_ / "m.onnx").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Writes a model with a small initialiser between two large ones, which store their data in different fields.
  std::string write_model() const {
    kit::GraphWriter graph;
    graph.raw_field(5, float_tensor("raw", 9, counted_floats(kLargeElements)));
    graph.raw_field(5, float_tensor("small", 9, {1, 2}));
    graph.raw_field(5, float_tensor("typed", 4, counted_floats(kLargeElements)));
    graph.node("Neg", {"raw"}, {}, "y");
    graph.output("y", ElementType::kFloat, {});
    const std::string bytes = kit::encode_model(std::move(graph).finish());
    kit::write_file(path_, bytes);
    return bytes;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(ModelFileTest, OnlyLargeDataStaysOnDisk) {
  const std::string bytes = write_model();
  const Model model = read_model(path_);
  ASSERT_EQ(model.file->bytes().size(), bytes.size());
  const auto& initializers = model.graph.initializers;
  EXPECT_TRUE(model.file->is_apart(*initializers.at(0).raw_data));
  EXPECT_FALSE(model.file->is_apart(*initializers.at(1).raw_data));
  EXPECT_FALSE(model.file->is_apart(initializers.at(0).name));
  EXPECT_FALSE(model.file->is_apart(bytes));
  EXPECT_EQ(model.graph.nodes.at(0).op_type, "Neg");
}

TEST_F(ModelFileTest, TensorsHaveTheElementsOfTheFile) {
  write_model();
  TensorData raw;
  TensorData typed;
  {
    const Model model = read_model(path_);
    TensorSource source(model);
    raw = source.load(model.graph.initializers.at(0));
    typed = source.load(model.graph.initializers.at(2));
  }
  const std::vector<float> wanted = counted_floats(kLargeElements);
  for (const TensorData& data : {raw, typed}) {
    ASSERT_EQ(data.bytes.size(), wanted.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(data.bytes.data(), wanted.data(), data.bytes.size()), 0);
  }
  EXPECT_FALSE(raw.is_copied);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(raw.bytes.data()) % 64, 0U);
}

// The data that is on disk only is what a writer may still change.
TEST_F(ModelFileTest, AFileThatIsCutBeforeATensorIsLoadedIsAnError) {
  write_model();
  const Model model = read_model(path_);
  fs::resize_file(path_, 1000);
  const std::string wanted =
      fmt::format("the ONNX model '{}' was written to while it was read; try again when its writer is done", path_);
  EXPECT_THAT(kit::user_error_of([&] { TensorSource(model).load(model.graph.initializers.at(0)); }), HasSubstr(wanted));
  EXPECT_THAT(kit::user_error_of([&] { import_model(model); }), HasSubstr(wanted));
}

TEST_F(ModelFileTest, AFileThatIsReplacedBeforeATensorIsLoadedIsRead) {
  write_model();
  const Model model = read_model(path_);
  kit::write_file(folder_ / "other", "another file");
  fs::rename(folder_ / "other", path_);
  EXPECT_EQ(TensorSource(model).load(model.graph.initializers.at(0)).bytes.size(), kLargeElements * sizeof(float));
}

// Cut files are read whole, and the decoder's message is that for the same bytes in memory.
TEST_F(ModelFileTest, CutFilesHaveTheMessagesOfTheDecoder) {
  const std::string bytes = write_model();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{12}, size_t{1000}, size_t{170'000}, bytes.size() - 1}) {
    const std::string cut = bytes.substr(0, size);
    kit::write_file(path_, cut);
    const std::string error = kit::user_error_of([&] { read_model(path_); });
    EXPECT_NE(error, "") << size;
    EXPECT_EQ(error, kit::user_error_of([&] { read_model(std::as_bytes(std::span(cut)), path_); })) << size;
  }
}

TEST_F(ModelFileTest, AFileThatIsTooLargeForAModelIsNotRead) {
  kit::write_file(path_, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  fs::resize_file(path_, ModelFile::kMostReadBytes + 1);
  EXPECT_THAT(kit::user_error_of([&] { read_model(path_); }), HasSubstr("malformed ONNX data"));
}

}  // namespace
}  // namespace headrace::onnx
