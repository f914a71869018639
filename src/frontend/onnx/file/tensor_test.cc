#include "frontend/onnx/file/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/file/read_model.h"
#include "kit/errors.h"
#include "kit/onnx_writer.h"

namespace headrace::onnx {
namespace {

using protozero::pbf_writer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An encoded TensorProto of this type and these dims, with what `fill` adds.
std::string encode(ElementType type, const std::vector<int64_t>& dims, const std::function<void(pbf_writer&)>& fill) {
  std::string bytes;
  pbf_writer writer(bytes);
  for (int64_t dim : dims) writer.add_int64(1, dim);
  writer.add_int32(2, static_cast<int32_t>(type));
  writer.add_string(8, "t");
  fill(writer);
  return bytes;
}

template <typename T>
std::vector<T> values_of(const TensorData& data) {
  std::vector<T> values(data.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
  return values;
}

template <typename T>
std::vector<T> load(const std::string& bytes) {
  TensorData data = TensorSource("t.pb").load(read_tensor_proto(bytes, "t.pb"));
  return values_of<T>(data);
}

std::string tensor_error_of(const std::string& bytes) {
  return kit::user_error_of([&] { TensorSource("t.pb").load(read_tensor_proto(bytes, "t.pb")); });
}

std::function<void(pbf_writer&)> int32s(std::vector<int32_t> values) {
  return [values](pbf_writer& w) { w.add_packed_int32(5, values.begin(), values.end()); };
}

std::function<void(pbf_writer&)> raw(std::string bytes) {
  return [bytes](pbf_writer& w) { w.add_bytes(9, bytes); };
}

TEST(LoadTensor, TypedFields) {
  const std::vector<float> floats = {1.5F, -2};
  EXPECT_THAT(load<float>(encode(ElementType::kFloat, {2},
                                 [&](pbf_writer& w) { w.add_packed_float(4, floats.begin(), floats.end()); })),
              ElementsAre(1.5F, -2));
  const std::vector<double> doubles = {1e300};
  EXPECT_THAT(load<double>(encode(ElementType::kDouble, {},
                                  [&](pbf_writer& w) { w.add_packed_double(10, doubles.begin(), doubles.end()); })),
              ElementsAre(1e300));
  const std::vector<int64_t> longs = {-1, std::numeric_limits<int64_t>::max()};
  EXPECT_THAT(load<int64_t>(encode(ElementType::kInt64, {1, 2},
                                   [&](pbf_writer& w) { w.add_packed_int64(7, longs.begin(), longs.end()); })),
              ElementsAre(-1, std::numeric_limits<int64_t>::max()));
  const std::vector<uint64_t> unsigneds = {std::numeric_limits<uint32_t>::max()};
  auto fill = [&](pbf_writer& w) { w.add_packed_uint64(11, unsigneds.begin(), unsigneds.end()); };
  EXPECT_THAT(load<uint64_t>(encode(ElementType::kUint64, {1}, fill)), ElementsAre(unsigneds[0]));
  EXPECT_THAT(load<uint32_t>(encode(ElementType::kUint32, {1}, fill)), ElementsAre(unsigneds[0]));
}

TEST(LoadTensor, SmallTypesLieInInt32Data) {
  EXPECT_THAT(load<int32_t>(encode(ElementType::kInt32, {2}, int32s({-7, 7}))), ElementsAre(-7, 7));
  EXPECT_THAT(load<int16_t>(encode(ElementType::kInt16, {2}, int32s({-7, 7}))), ElementsAre(-7, 7));
  EXPECT_THAT(load<uint16_t>(encode(ElementType::kUint16, {1}, int32s({65535}))), ElementsAre(65535));
  EXPECT_THAT(load<int8_t>(encode(ElementType::kInt8, {2}, int32s({-128, 127}))), ElementsAre(-128, 127));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kUint8, {1}, int32s({200}))), ElementsAre(200));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kBool, {2}, int32s({1, 0}))), ElementsAre(1, 0));
  EXPECT_THAT(load<uint16_t>(encode(ElementType::kFloat16, {1}, int32s({0x3c00}))), ElementsAre(0x3c00));
  EXPECT_THAT(load<uint16_t>(encode(ElementType::kBfloat16, {1}, int32s({0x3f80}))), ElementsAre(0x3f80));
}

TEST(LoadTensor, ElementsBelowAByteGetOneEach) {
  // The first element lies in the lowest bits; the last byte may be partly used.
  EXPECT_THAT(load<int8_t>(encode(ElementType::kInt4, {3}, raw("\x8f\x07"))), ElementsAre(-1, -8, 7));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kUint4, {1, 3}, raw("\x8f\xf7"))), ElementsAre(15, 8, 7));
  EXPECT_THAT(load<int8_t>(encode(ElementType::kInt2, {5}, raw("\xe4\x02"))), ElementsAre(0, 1, -2, -1, -2));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kUint2, {4}, raw("\xe4"))), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kFloat4E2M1, {3}, raw("\x2f\x09"))), ElementsAre(15, 2, 9));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kUint4, {3}, int32s({0x21, 0x43}))), ElementsAre(1, 2, 3));
  EXPECT_THAT(load<int8_t>(encode(ElementType::kInt4, {2}, int32s({-1}))), ElementsAre(-1, -1));
  EXPECT_THAT(load<uint8_t>(encode(ElementType::kUint2, {5}, int32s({0xe4, 1}))), ElementsAre(0, 1, 2, 3, 1));
  for (const ElementType type : {ElementType::kFloat8E4M3Fn, ElementType::kFloat8E4M3Fnuz, ElementType::kFloat8E5M2,
                                 ElementType::kFloat8E5M2Fnuz}) {
    EXPECT_THAT(load<uint8_t>(encode(type, {2}, int32s({0x7e, 0xff}))), ElementsAre(0x7e, 0xff));
    EXPECT_THAT(load<uint8_t>(encode(type, {2}, raw("\x7e\xff"))), ElementsAre(0x7e, 0xff));
  }
}

TEST(LoadTensor, WrongLengthsOfPackedElementsAreErrors) {
  EXPECT_THAT(tensor_error_of(encode(ElementType::kInt4, {3}, raw("abc"))),
              HasSubstr("its dims [3] ask for 2 bytes of int4, but it holds 3"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kUint2, {9}, raw("ab"))),
              HasSubstr("its dims [9] ask for 3 bytes of uint2, but it holds 2"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat4E2M1, {2, 2}, int32s({1, 2, 3, 4}))),
              HasSubstr("its dims [2, 2] ask for 2 values of float4_e2m1fn elements, but it holds 4"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kUint4, {2}, int32s({256}))),
              HasSubstr("it holds 256, which is not a value of uint4"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat8E5M2, {1}, int32s({-129}))),
              HasSubstr("it holds -129, which is not a value of float8_e5m2"));
}

TEST(LoadTensor, UnpackedFieldsAreRead) {
  EXPECT_THAT(load<int32_t>(encode(ElementType::kInt32, {2},
                                   [](pbf_writer& w) {
                                     w.add_int32(5, -7);
                                     w.add_int32(5, 300);
                                   })),
              ElementsAre(-7, 300));
  EXPECT_THAT(load<float>(encode(ElementType::kFloat, {2},
                                 [](pbf_writer& w) {
                                   w.add_float(4, 1);
                                   w.add_float(4, 2);
                                 })),
              ElementsAre(1, 2));
}

TEST(LoadTensor, ComplexAndStrings) {
  const std::vector<float> floats = {1, 2, 3, 4};
  EXPECT_THAT(load<float>(encode(ElementType::kComplex64, {2},
                                 [&](pbf_writer& w) { w.add_packed_float(4, floats.begin(), floats.end()); })),
              ElementsAre(1, 2, 3, 4));
  std::string bytes = encode(ElementType::kString, {2}, [](pbf_writer& w) {
    w.add_string(6, "a");
    w.add_string(6, "");
  });
  EXPECT_THAT(TensorSource("t").load(read_tensor_proto(bytes, "t")).strings, ElementsAre("a", ""));
}

// A view would keep the bytes of the whole model in memory.
TEST(LoadTensor, RawDataIsCopiedToAlignedMemory) {
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string bytes = encode(ElementType::kInt32, {2}, [&](pbf_writer& w) {
      w.add_string(12, std::string(shift, 'd'));  // doc_string moves the data
      w.add_bytes(9, "12345678");
    });
    TensorProto proto = read_tensor_proto(bytes, "t");
    TensorData data = TensorSource("t").load(proto);
    EXPECT_TRUE(data.is_copied);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data.bytes.data()) % 4, 0U);
    EXPECT_EQ(std::memcmp(data.bytes.data(), "12345678", 8), 0);
    EXPECT_NE(data.owner, nullptr);
  }
}

TEST(LoadTensor, EmptyTensorNeedsNoData) {
  std::string bytes = encode(ElementType::kFloat, {3, 0, int64_t{1} << 62}, [](pbf_writer&) {});
  TensorData data = TensorSource("t").load(read_tensor_proto(bytes, "t"));
  EXPECT_TRUE(data.bytes.empty());
  EXPECT_EQ(data.dims.size(), 3U);
}

TEST(LoadTensor, Errors) {
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat, {2}, raw("1234567"))),
              HasSubstr("tensor 't': its dims [2] ask for 8 bytes of float32, but it holds 7"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kInt8, {3}, int32s({1, 2}))),
              HasSubstr("its dims [3] ask for 3 int8 values, but it holds 2"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kInt64, {1}, [](pbf_writer&) {})), HasSubstr("but it holds 0"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kInt8, {2}, int32s({127, -129}))),
              HasSubstr("it holds -129, which is not a value of int8"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kUint16, {1}, int32s({65536}))), HasSubstr("a value of uint16"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat16, {2}, int32s({65535, 65536}))), HasSubstr("holds 65536"));
  const std::vector<float> twice = {1};
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat, {1},
                                     [&](pbf_writer& w) {
                                       w.add_packed_float(4, twice.begin(), twice.end());
                                       w.add_bytes(9, "1234");
                                     })),
              HasSubstr("its elements are there twice, as raw_data and in the field of its type"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kString, {1}, [](pbf_writer&) {})), HasSubstr("ask for 1 strings"));
  EXPECT_THAT(tensor_error_of(encode(static_cast<ElementType>(27), {1}, raw("a"))),
              HasSubstr("its element type is type 27, which is not supported"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat8E8M0, {1}, raw("a"))),
              HasSubstr("its element type is float8_e8m0fnu, which is not supported"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kUndefined, {1}, raw("a"))), HasSubstr("is undefined"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat, {int64_t{1} << 40, int64_t{1} << 40}, raw("a"))),
              HasSubstr("are too large"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kBool, {1}, raw("\2"))),
              HasSubstr("a bool element is neither 0 nor 1"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kInt32, {1}, [](pbf_writer& w) { w.add_fixed32(5, 1); })),
              HasSubstr("its field 5 has the wrong wire type"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kString, {1}, [](pbf_writer& w) { w.add_int32(6, 1); })),
              HasSubstr("its field 6 has the wrong wire type"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kFloat, {1}, [](pbf_writer& w) { w.add_bytes(4, "12345"); })),
              HasSubstr("its field 4 ends inside a value"));
  EXPECT_THAT(tensor_error_of(encode(ElementType::kInt32, {1}, [](pbf_writer& w) { w.add_bytes(5, "\x01\xff"); })),
              HasSubstr("its data is not a valid protobuf field"));
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "external_data";
    std::filesystem::create_directories(folder_ / "sub");
    std::ofstream(folder_ / "sub" / "w.bin", std::ios::binary) << std::string(4096, 'p') + "abcdefgh";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string encode_external(const std::vector<std::pair<std::string, std::string>>& entries) {
    return encode(ElementType::kInt32, {2}, [&](pbf_writer& w) {
      w.add_int32(14, 1);
      for (const auto& [key, value] : entries) {
        pbf_writer entry(w, 13);
        entry.add_string(1, key);
        entry.add_string(2, value);
      }
    });
  }

  // The tensor as the initializer of a model in the folder.
  TensorData load_initializer(const std::string& tensor) {
    kit::GraphWriter graph;
    graph.raw_field(5, tensor);
    auto path = folder_ / "m.onnx";
    std::ofstream(path, std::ios::binary) << kit::encode_model(std::move(graph).finish());
    Model model = read_model(path.string());
    return TensorSource(model).load(model.graph.initializers.at(0));
  }

  std::string error_of_entries(const std::vector<std::pair<std::string, std::string>>& entries) {
    return kit::user_error_of([&] { load_initializer(encode_external(entries)); });
  }

  std::filesystem::path folder_;
};

TEST_F(ExternalData, IsReadAndOutlivesTheModel) {
  TensorData data = load_initializer(encode_external({{"location", "sub/w.bin"}, {"offset", "4096"}, {"length", "8"}}));
  EXPECT_FALSE(data.is_copied);
  EXPECT_EQ(std::memcmp(data.bytes.data(), "abcdefgh", 8), 0);
}

TEST_F(ExternalData, MayLieAtAnyOffset) {
  TensorData data = load_initializer(encode_external({{"location", "sub/w.bin"}, {"offset", "4095"}}));
  EXPECT_FALSE(data.is_copied);
  EXPECT_EQ(std::memcmp(data.bytes.data(), "pabcdefg", 8), 0);
}

TEST_F(ExternalData, Errors) {
  EXPECT_THAT(error_of_entries({}), HasSubstr("its external data has no location"));
  EXPECT_THAT(error_of_entries({{"location", "/etc/passwd"}}), HasSubstr("only a path below the model's folder"));
  EXPECT_THAT(error_of_entries({{"location", "sub/../../x"}}), HasSubstr("only a path below the model's folder"));
  EXPECT_THAT(error_of_entries({{"location", std::string("a\0b", 3)}}), HasSubstr("'a\\x00b'; only a path below"));
  EXPECT_THAT(error_of_entries({{"location", "none.bin"}}),
              HasSubstr("none.bin': No such file or directory; put the file there that came with the model"));
  EXPECT_THAT(error_of_entries({{"location", "sub"}}), HasSubstr("is a directory"));
  EXPECT_THAT(error_of_entries({{"location", "sub/w.bin"}, {"offset", "4100"}}),
              HasSubstr("its external data is bytes 4100 to 4108 of 'sub/w.bin', which has 4104: that file is cut"));
  EXPECT_THAT(error_of_entries({{"location", "sub/w.bin"}, {"offset", "9223372036854775807"}}),
              HasSubstr("which has 4104"));
  EXPECT_THAT(error_of_entries({{"location", "sub/w.bin"}, {"offset", "-4"}}),
              HasSubstr("the offset of its external data is '-4', not a number of bytes"));
  EXPECT_THAT(error_of_entries({{"location", "sub/w.bin"}, {"length", "9"}}),
              HasSubstr("its external data has 9 bytes of 'sub/w.bin', its dims ask for 8"));
  EXPECT_THAT(tensor_error_of(encode_external({{"location", "w.bin"}})),
              HasSubstr("there is no folder to look for it in"));
}

TEST_F(ExternalData, LinksStayInTheModelsFolder) {
  namespace fs = std::filesystem;
  const fs::path outside = fs::path(::testing::TempDir()) / "external_data_outside";
  fs::create_directories(outside);
  fs::copy_file(folder_ / "sub" / "w.bin", outside / "w.bin", fs::copy_options::overwrite_existing);
  fs::create_symlink("sub/w.bin", folder_ / "inside.bin");
  fs::create_symlink(outside / "w.bin", folder_ / "outside.bin");
  fs::create_directory_symlink(outside, folder_ / "folder");
  EXPECT_EQ(load_initializer(encode_external({{"location", "inside.bin"}, {"offset", "4096"}})).bytes.size(), 8u);
  for (const std::string location : {"outside.bin", "folder/w.bin"}) {
    EXPECT_THAT(error_of_entries({{"location", location}}),
                HasSubstr("'" + location + "', a symbolic link that leads out of the model's folder; copy the file"));
  }
  fs::remove_all(outside);
}

// A tensor that was read does not change if its file is truncated later.
TEST_F(ExternalData, AFileThatIsCutLaterIsWhole) {
  TensorData data = load_initializer(encode_external({{"location", "sub/w.bin"}, {"offset", "4096"}}));
  std::ofstream(folder_ / "sub" / "w.bin", std::ios::trunc) << "";
  EXPECT_EQ(std::memcmp(data.bytes.data(), "abcdefgh", 8), 0);
}

// Each tensor is read when it is used; all of them are of one version of the file.
TEST_F(ExternalData, AFileThatIsReplacedBetweenTwoTensorsIsAnError) {
  const std::string tensor = encode_external({{"location", "sub/w.bin"}, {"offset", "4096"}});
  kit::GraphWriter graph;
  graph.raw_field(5, tensor);
  std::ofstream(folder_ / "m.onnx", std::ios::binary) << kit::encode_model(std::move(graph).finish());
  const Model model = read_model((folder_ / "m.onnx").string());
  TensorSource source(model);
  source.load(model.graph.initializers.at(0));
  std::ofstream(folder_ / "new.bin", std::ios::binary) << std::string(5000, 'n');
  std::filesystem::rename(folder_ / "new.bin", folder_ / "sub" / "w.bin");
  EXPECT_THAT(kit::user_error_of([&] { source.load(model.graph.initializers.at(0)); }),
              HasSubstr("sub/w.bin' was written to while it was read; try again when its writer is done"));
}

TEST_F(ExternalData, AVeryLargeFileIsMapped) {
  std::filesystem::resize_file(folder_ / "sub" / "w.bin", MappedFile::kCopiedBytes + 8);
  for (const int64_t offset : {4096, 4095}) {
    const TensorData data =
        load_initializer(encode_external({{"location", "sub/w.bin"}, {"offset", std::to_string(offset)}}));
    EXPECT_EQ(data.is_copied, offset == 4095);
    EXPECT_EQ(std::memcmp(data.bytes.data(), offset == 4095 ? "pabcdefg" : "abcdefgh", 8), 0);
  }
}

// A cache of downloads keeps the files elsewhere, side by side, and links to each.
TEST_F(ExternalData, AModelThatIsALinkHasItsDataWhereItReallyLies) {
  namespace fs = std::filesystem;
  load_initializer(encode_external({{"location", "sub/w.bin"}}));
  const fs::path links = fs::path(::testing::TempDir()) / "external_data_links";
  fs::create_directories(links / "sub");
  fs::create_symlink(folder_ / "m.onnx", links / "m.onnx");
  fs::create_symlink(folder_ / "sub" / "w.bin", links / "sub" / "w.bin");
  const Model model = read_model((links / "m.onnx").string());
  EXPECT_EQ(TensorSource(model).load(model.graph.initializers.at(0)).bytes.size(), 8u);
  fs::remove_all(links);
}

TEST_F(ExternalData, DataOfAFileOutlivesTheModel) {
  const int32_t values[] = {1, 2};
  std::string tensor = kit::encode_tensor("t", ElementType::kInt32, {2}, std::as_bytes(std::span(values))).bytes;
  TensorData data = load_initializer(tensor);
  EXPECT_THAT(values_of<int32_t>(data), ElementsAre(1, 2));
  EXPECT_NE(data.owner, nullptr);
}

}  // namespace
}  // namespace headrace::onnx
