#include "relay/text/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/temporary_name.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "kit/mutate.h"
#include "kit/options.h"
#include "object/structural_equal.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

using ::testing::HasSubstr;

// A file of the test's own, gone at its end.
class WeightsFile : public ::testing::Test {
 protected:
  WeightsFile() : descriptor_(mkstemp(path_.data())) {}
  ~WeightsFile() override {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }

  void write(const std::vector<NDArray>& weights) { write_weights(descriptor_, path_, weights); }
  void write_bytes(const std::string& bytes) { kit::write_file(path_, bytes); }
  // A header, and data behind it.
  void write_parts(const std::string& header, size_t data_bytes) {
    uint64_t length = header.size();
    write_bytes(std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\1'));
  }
  std::string bytes() const { return kit::read_file(path_); }
  void expect_error(const std::string& what) {
    const std::string message = kit::user_error_of([&] { read_weights(path_); });
    EXPECT_THAT(message, HasSubstr(what));
    EXPECT_THAT(message, HasSubstr(path_));
  }

  std::string path_ = temporary_name(::testing::TempDir() + "weights-");
  int descriptor_;
};

NDArray numbers(Shape shape, DataType dtype, int64_t first) {
  NDArray data = NDArray::empty(std::move(shape), dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i)
    set_element_int(data.tensor(), i, dtype.is_bool() ? (first + i) % 2 : first + i);
  return data;
}

TEST_F(WeightsFile, HoldsEveryDtype) {
  std::vector<NDArray> weights;
  for (const char* name : {"bool", "int8", "uint8", "float16", "bfloat16", "int16", "uint16", "int32", "uint32",
                           "float32", "float64", "int64", "uint64"})
    weights.push_back(numbers({3, 7}, DataType::parse(name), static_cast<int64_t>(weights.size())));
  weights.push_back(NDArray::empty({0, 40}, DataType::int_(8)));
  weights.push_back(numbers({}, DataType::float_(32), 5));
  write(weights);
  const std::vector<NDArray> read = read_weights(path_);
  ASSERT_EQ(read.size(), weights.size());
  for (size_t i = 0; i < read.size(); ++i) EXPECT_TRUE(read[i].content_equal(weights[i])) << i;
}

TEST_F(WeightsFile, IsOneThatOthersRead) {
  write({numbers({2}, DataType::uint(8), 1), numbers({1, 2}, DataType::float_(32), 3)});
  const std::string text = bytes();
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
  EXPECT_EQ(text.size(), 8 + length + 10);
  const std::string header = text.substr(8, length);
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"format":"headrace.relay","version":"1"},)"
            R"("relay.Constant.1":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
            R"("relay.Constant.0":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}})");
}

TEST_F(WeightsFile, TensorsStayInTheMappedFile) {
  write({numbers({64}, DataType::float_(32), 0)});
  const NDArray read = read_weights(path_).at(0);
  EXPECT_TRUE(read.object()->read_only);
  EXPECT_EQ(element_as_int(read.tensor(), 63), 63);  // the file object is gone, the mapping is not
}

TEST_F(WeightsFile, CarriesAProgramsConstantsEachContentOnce) {
  const Expr a = make_constant(numbers({5, 5}, DataType::float_(32), 1));
  const Expr b = make_constant(numbers({5, 5}, DataType::float_(32), 1));
  const Expr program = make_tuple({a, make_tuple({b, make_constant(numbers({5}, DataType::float_(32), 1))})});
  std::vector<NDArray> weights;
  const std::string text = print_expr(program, {.weights = &weights});
  EXPECT_EQ(weights.size(), 1u);
  write(weights);
  const std::vector<NDArray> read = read_weights(path_);
  assert_structural_equal(Value(program), Value(parse_expr(text, "t", {.weights = &read})));
}

TEST_F(WeightsFile, AnotherProgramsFileIsRead) {
  // Elements that are not aligned, in another order, without metadata.
  write_parts(R"({"relay.Constant.1":{"dtype":"I32","shape":[1],"data_offsets":[1,5]},)"
              R"("relay.Constant.0":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
              5);
  const std::vector<NDArray> read = read_weights(path_);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(element_as_int(read[0].tensor(), 0), 1);
  EXPECT_EQ(element_as_int(read[1].tensor(), 0), 0x01010101);
}

TEST_F(WeightsFile, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(kit::user_error_of([] { read_weights("/nowhere/w.safetensors"); }),
              HasSubstr("cannot read the weights file '/nowhere/w.safetensors'"));
  write_bytes("");
  expect_error("it has 0 bytes");
  write_bytes("a text, not weights");
  expect_error("its header would have");
  const auto one = [](const std::string& entry) { return "{\"relay.Constant.0\":" + entry + "}"; };
  const struct {
    std::string header, message;
  } kCases[] = {
      {"{", "its header cannot be read"},
      {"[1]", "its header is not a list of tensors"},
      {"{\"a\":[[[[1]]]]}", "its header is not a list of tensors"},
      {"{\"w\":{}}", "tensor 'w' is not called relay.Constant.0"},
      {"{\"relay.Constant.00\":{}}", "is not called"},
      {"{\"relay.Constant.1\":{}}", "it holds 1 tensors, one of them is 'relay.Constant.1': others are missing"},
      {one("3"), "'relay.Constant.0' has no shape"},
      {one(R"({"shape":[-1]})"), "the shape of 'relay.Constant.0' hold something else than counts"},
      {one(R"({"shape":[1],"dtype":"F4","data_offsets":[0,4]})"), "the dtype F4, which is not known here"},
      {one(R"({"shape":[1],"data_offsets":[0,4]})"), "the dtype none"},
      {one(R"({"shape":[1],"dtype":"F32"})"), "'relay.Constant.0' has no data_offsets"},
      {one(R"({"shape":[1],"dtype":"F32","data_offsets":[4,0]})"), "are not a begin and end"},
      {one(R"({"shape":[4],"dtype":"F32","data_offsets":[0,16]})"), "has 8; the file is truncated"},
      {one(R"({"shape":[3],"dtype":"F32","data_offsets":[0,8]})"), "is float32 of shape (3), but has 8 bytes"},
      {one(R"({"shape":[4611686018427387904,4],"dtype":"F32","data_offsets":[0,8]})"), "the shape of"},
      {one(R"({"shape":[1],"dtype":"F32","data_offsets":[4,8]})"), "byte 0 of the data belongs to no tensor"},
      {one(R"({"shape":[1],"dtype":"F32","data_offsets":[0,4]})"), "it has 4 bytes after its last tensor"},
  };
  for (const auto& [header, message] : kCases) {
    SCOPED_TRACE(header);
    write_parts(header, 8);
    expect_error(message);
  }
}

TEST_F(WeightsFile, TruncatedAnywhereIsAnError) {
  write({numbers({5}, DataType::float_(32), 1), numbers({3}, DataType::int_(8), 1)});
  const std::string whole = bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    write_bytes(whole.substr(0, size));
    EXPECT_THROW(read_weights(path_), UserError) << size;
  }
}

TEST_F(WeightsFile, MutatedIsAnErrorOrTensors) {
  write({numbers({5, 9}, DataType::float_(32), 1), numbers({3}, DataType::int_(8), 1),
         numbers({}, DataType::bool_(), 1)});
  const std::string whole = bytes();
  int errors = 0;
  const int runs = kit::case_count(500, 20000);
  for (int run = 0; run < runs; ++run) {
    kit::Random random(kit::options().seed.value_or(static_cast<uint64_t>(run)));
    SCOPED_TRACE(::testing::Message() << "--seed=" << run);
    write_bytes(kit::mutate(whole, random));
    const auto read_all = [&] {
      uint64_t sum = 0;
      for (const NDArray& tensor : read_weights(path_)) sum += tensor.content_hash();
      return sum;
    };
    errors += kit::user_error_of(read_all).empty() ? 0 : 1;
  }
  EXPECT_GT(errors, runs / 10);
  EXPECT_LT(errors, runs);
}

TEST_F(WeightsFile, UnsupportedTensorsAndFailedWritesAreErrors) {
  EXPECT_THAT(kit::user_error_of([&] { write({numbers({20}, DataType::int_(4), 0)}); }), HasSubstr("cannot hold int4"));
  EXPECT_THAT(kit::user_error_of([&] { write_weights(-1, "w", {}); }), HasSubstr("cannot write 'w'"));
}

}  // namespace
}  // namespace headrace::relay
