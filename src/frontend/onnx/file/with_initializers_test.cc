#include "frontend/onnx/file/with_initializers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/file/read_model.h"
#include "frontend/onnx/file/tensor.h"
#include "kit/errors.h"
#include "kit/onnx_writer.h"

namespace headrace::onnx {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// y = x + w, with the initialisers w and k.
std::string added() {
  kit::GraphWriter graph("main");
  graph.input("x", ElementType::kFloat, {int64_t{2}});
  graph.input("w", ElementType::kFloat, {int64_t{2}});
  graph.initializer("w", {2}, std::array{1.0F, 2.0F});
  graph.initializer("k", {2}, std::array{int64_t{3}, int64_t{4}});
  graph.node("Add", {"x", "w"}, {}, "y");
  graph.output("y", ElementType::kFloat, {int64_t{2}});
  return kit::encode_model(std::move(graph).finish(), {{"", 13}, {"ai.onnx.ml", 2}});
}

std::vector<std::string_view> names_of(const Model& model) {
  std::vector<std::string_view> names;
  for (const TensorProto& tensor : model.graph.initializers) names.push_back(tensor.name);
  return names;
}

TEST(WithInitializers, ChangesNothingWithoutNames) {
  const std::string model = added();
  EXPECT_EQ(with_initializers(bytes_of(model), "m", {}, {}), model);
  EXPECT_EQ(with_initializers(bytes_of(model), "m", {{"q", NDArray::zeros({1}, DataType::float_(32))}}, {"r"}), model);
}

TEST(WithInitializers, ReplacedOnesHoldTheTensors) {
  const std::string model = added();
  const NDArray given = NDArray::from_vector<double>({1, 3}, DataType::float_(64), {5, 6, 7});
  const std::string bytes = with_initializers(bytes_of(model), "m", {{"w", given}}, {});
  const Model read = read_model(bytes_of(bytes), "changed");
  EXPECT_THAT(names_of(read), ::testing::ElementsAre("w", "k"));
  const TensorProto& w = read.graph.initializers.at(0);
  EXPECT_EQ(w.type, ElementType::kDouble);
  EXPECT_THAT(w.dims, ::testing::ElementsAre(1, 3));
  const TensorData data = TensorSource(read).load(w);
  ASSERT_EQ(data.bytes.size(), 24U);
  EXPECT_EQ(std::memcmp(data.bytes.data(), given.data<const std::byte>(), 24), 0);
  EXPECT_EQ(read.opset_imports.size(), 2U);
  EXPECT_EQ(read.graph.nodes.at(0).op_type, "Add");
}

TEST(WithInitializers, ScalarsAndEmptyTensorsAreWritten) {
  const std::string model = added();
  const std::string bytes = with_initializers(bytes_of(model), "m",
                                              {{"w", NDArray::from_vector<int8_t>({}, DataType::int_(8), {-3})},
                                               {"k", NDArray::empty({2, 0}, DataType::bool_())}},
                                              {});
  const Model read = read_model(bytes_of(bytes), "changed");
  EXPECT_THAT(read.graph.initializers.at(0).dims, ::testing::IsEmpty());
  EXPECT_EQ(read.graph.initializers.at(0).raw_data, "\xfd");
  EXPECT_THAT(read.graph.initializers.at(1).dims, ::testing::ElementsAre(2, 0));
  EXPECT_EQ(read.graph.initializers.at(1).type, ElementType::kBool);
}

TEST(WithInitializers, ElementsBelowAByteArePacked) {
  const std::string model = added();
  const NDArray given = NDArray::from_vector<int8_t>({3}, DataType::int_(4), {-1, 7, -8});
  const std::string bytes = with_initializers(bytes_of(model), "m", {{"w", given}}, {});
  const Model read = read_model(bytes_of(bytes), "changed");
  EXPECT_EQ(read.graph.initializers.at(0).type, ElementType::kInt4);
  EXPECT_EQ(read.graph.initializers.at(0).raw_data, "\x7f\x08");
  const TensorData data = TensorSource(read).load(read.graph.initializers.at(0));
  ASSERT_EQ(data.bytes.size(), 3U);
  EXPECT_EQ(std::memcmp(data.bytes.data(), given.data<const std::byte>(), 3), 0);
}

TEST(WithInitializers, DroppedOnesAreInputsOnly) {
  const std::string model = added();
  const std::string bytes = with_initializers(bytes_of(model), "m", {}, {"w"});
  const Model read = read_model(bytes_of(bytes), "changed");
  EXPECT_THAT(names_of(read), ::testing::ElementsAre("k"));
  EXPECT_EQ(read.graph.inputs.size(), 2U);
}

TEST(WithInitializers, MalformedBytesAreErrors) {
  const std::string model = added();
  for (size_t size = 1; size < model.size(); ++size) {
    SCOPED_TRACE(size);
    const std::string cut = model.substr(0, size);
    const std::string error = kit::user_error_of([&] { with_initializers(bytes_of(cut), "m", {}, {"w"}); });
    if (error.empty()) {  // cut between two fields of the model
      EXPECT_EQ(with_initializers(bytes_of(cut), "m", {}, {}), cut);
    } else {
      EXPECT_THAT(error, HasSubstr("malformed ONNX data"));
    }
  }
  std::string tensor;
  protozero::pbf_writer(tensor).add_string(2, "a type");
  std::string graph;
  protozero::pbf_writer(graph).add_message(5, tensor);
  const std::string bad = kit::encode_model({graph});
  EXPECT_THAT(kit::user_error_of([&] { with_initializers(bytes_of(bad), "m", {}, {}); }),
              HasSubstr("field 2 holds bytes where an integer belongs"));
}

TEST(WithInitializers, DtypesThatOnnxDoesNotHaveAreErrors) {
  const std::string model = added();
  const NDArray vectors = NDArray::zeros({2}, DataType::float_(32, 4));
  EXPECT_EQ(kit::user_error_of([&] { with_initializers(bytes_of(model), "m", {{"w", vectors}}, {}); }),
            "initialiser 'w': ONNX has no tensors of float32x4");
}

TEST(WithInitializers, GraphsThatAreTooLongAreErrors) {
  const std::string model = added();
  float element = 0;
  const NDArray huge = NDArray::view(&element, {int64_t{1} << 30}, DataType::float_(32));  // refused before it is read
  EXPECT_EQ(kit::user_error_of([&] { with_initializers(bytes_of(model), "m", {{"w", huge}}, {}); }),
            "'m' would be longer than 4294967295 bytes with these initialisers");
}

}  // namespace
}  // namespace headrace::onnx
