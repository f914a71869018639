#include "tools/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "kit/errors.h"
#include "kit/random.h"

namespace headrace::tools {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// A version 1 file with this header and data.
std::vector<std::byte> file_with(std::string_view header, std::string_view data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  text += header;
  text += data;
  return bytes_of(text);
}

std::string error_of(std::span<const std::byte> file) {
  return kit::user_error_of([&] { parse_npy(file, "a.npy"); });
}

TEST(Npy, RoundTrip) {
  NpyArray array{.kind = 'i', .item_bytes = 2, .shape = {2, 3}, .bytes = bytes_of("aabbccddeeff")};
  std::vector<std::byte> file = encode_npy(array);
  EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0U);
  NpyArray back = parse_npy(file, "a.npy");
  EXPECT_EQ(back.kind, 'i');
  EXPECT_EQ(back.item_bytes, 2);
  EXPECT_EQ(back.shape, array.shape);
  EXPECT_EQ(back.bytes, array.bytes);
}

TEST(Npy, WritesWhatNumpyWrites) {
  NpyArray array{.kind = 'f', .item_bytes = 4, .shape = {3}, .bytes = std::vector<std::byte>(12)};
  std::vector<std::byte> file = encode_npy(array);
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  EXPECT_NE(text.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), std::string_view::npos);
  array.shape = {};
  array.bytes.resize(4);
  file = encode_npy(array);
  text = {reinterpret_cast<const char*>(file.data()), file.size()};
  EXPECT_NE(text.find("'shape': (), }"), std::string_view::npos);
}

// The second bool is wrong, which only a reader of the elements sees.
TEST(Npy, IsAdmittedBeforeItsElementsAreRead) {
  const std::vector<std::byte> file = file_with("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "\1\7");
  const auto refuse = [](const NpyHeader& header) {
    throw_user_error("{} bytes of {}", header.data_bytes, header.kind);
  };
  EXPECT_EQ(kit::user_error_of([&] { parse_npy(file, "a.npy", refuse); }), "2 bytes of b");
  EXPECT_NE(error_of(file).find("it has a bool of 7"), std::string::npos);
}

TEST(Npy, LongHeadersAreRefused) {
  const auto of_length = [](std::string_view length) {
    return bytes_of(std::string("\x93NUMPY\x02\x00", 8) + std::string(length));
  };
  EXPECT_NE(error_of(of_length({"\xff\xff\x00\x00", 4})).find("it is truncated"), std::string::npos);
  EXPECT_NE(error_of(of_length({"\x00\x00\x01\x00", 4})).find("its header has 65536 bytes; at most 65535 are read"),
            std::string::npos);
}

TEST(Npy, ReadsColumnMajor) {
  // numpy.asfortranarray([[1, 2, 3], [4, 5, 6]]): columns one after another.
  NpyArray array =
      parse_npy(file_with("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "\1\4\2\5\3\6"), "a.npy");
  EXPECT_EQ(array.bytes, bytes_of("\1\2\3\4\5\6"));
}

TEST(Npy, ReadsBigEndian) {
  NpyArray array = parse_npy(file_with("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", "abcd"), "a.npy");
  EXPECT_EQ(array.bytes, bytes_of("badc"));
}

TEST(Npy, RefusesBoolsThatAreNone) {
  constexpr std::string_view kHeader = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }";
  EXPECT_EQ(parse_npy(file_with(kHeader, std::string_view("\1\0\1", 3)), "a.npy").bytes.size(), 3U);
  EXPECT_NE(error_of(file_with(kHeader, std::string_view("\1\0\2", 3))).find("a bool of 2, neither 0 nor 1"),
            std::string::npos);
  EXPECT_NE(error_of(file_with("{'descr': '<b4', 'fortran_order': False, 'shape': (1,), }", "aaaa"))
                .find("its bools have 4 bytes"),
            std::string::npos);
}

TEST(Npy, RefusesWhatIsNoRegularFile) {
  const auto error = [](const char* path) { return kit::user_error_of([&] { read_npy(path); }); };
  EXPECT_NE(error("/dev/zero").find("'/dev/zero' is not a regular file"), std::string::npos);
  EXPECT_NE(error("/tmp").find("'/tmp' is a directory"), std::string::npos);
}

TEST(Npy, ReadsEmptyAndScalar) {
  EXPECT_TRUE(
      parse_npy(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9), }", ""), "a").bytes.empty());
  EXPECT_EQ(parse_npy(file_with("{'descr': '|b1', 'fortran_order': False, 'shape': (), }", "\1"), "a").bytes.size(),
            1U);
}

TEST(Npy, FileRoundTrip) {
  auto path = std::filesystem::path(testing::TempDir()) / "round_trip.npy";
  NpyArray array{.kind = 'u', .item_bytes = 1, .shape = {4}, .bytes = bytes_of("wxyz")};
  write_npy(path, array);
  EXPECT_EQ(read_npy(path).bytes, array.bytes);
  std::filesystem::remove(path);
}

TEST(Npy, Errors) {
  EXPECT_EQ(error_of(bytes_of("PK")),
            "'a.npy' is not an array that can be read: it does not begin as a .npy file does");
  EXPECT_NE(error_of(bytes_of(std::string_view("\x93NUMPY\x09\x00\x10\x00", 10))).find("format version is 9"),
            std::string::npos);
  auto expect = [](std::string_view header, std::string_view data, std::string_view message) {
    EXPECT_NE(error_of(file_with(header, data)).find(message), std::string::npos) << error_of(file_with(header, data));
  };
  expect("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "", "its dtype is '|O'");
  expect("{'descr': '<U7', 'fortran_order': False, 'shape': (1,), }", "", "its dtype is '<U7'");
  expect("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "", "its dtype is a record");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234",
         "4 bytes of data where its shape asks for 8");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "", "its shape is malformed");
  expect("{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000), }", "", "its shape is too large");
  expect("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "", "its header lacks a 'False'");
  expect("{'fortran_order': False, 'shape': (2,), }", "", "its header lacks 'descr' or 'shape'");
  expect("{'color': 'red'}", "", "unknown key 'color'");
  expect("{'descr': '<f4", "", "open string");
  EXPECT_EQ(kit::user_error_of([] { read_npy("/no/such.npy"); }),
            "cannot read the array file '/no/such.npy': No such file or directory");
  EXPECT_EQ(kit::user_error_of([] { read_npy("/"); }), "the array file '/' is a directory; give the path of a file");
  EXPECT_EQ(kit::user_error_of([] { write_npy("/no/such.npy", {}); }),
            "cannot write the array file '/no/such.npy': No such file or directory");
  EXPECT_EQ(kit::user_error_of([] { write_npy("/", {}); }), "cannot write the array file '/': it is a folder");
}

TEST(Npy, MutationsNeverCrash) {
  NpyArray array{.kind = 'i', .item_bytes = 2, .shape = {2, 3}, .bytes = std::vector<std::byte>(12)};
  const std::vector<std::byte> valid = encode_npy(array);
  kit::Random random(7);
  int errors = 0;
  for (int run = 0; run < 2000; ++run) {
    std::vector<std::byte> file = valid;
    for (int64_t i = random.integer(1, 3); i > 0; --i) {
      file[random.index(file.size())] = static_cast<std::byte>(random.integer(0, 255));
    }
    if (random.chance(0.2F)) file.resize(random.index(file.size()));
    errors += error_of(file).empty() ? 0 : 1;
  }
  EXPECT_GT(errors, 500);
}

}  // namespace
}  // namespace headrace::tools
