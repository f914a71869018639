#include "tools/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"

namespace headrace::tools {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// numpy's own limit is 10,000. Only records, which are not read, have long headers.
constexpr uint32_t kMostHeaderBytes = 65535;

[[noreturn]] void fail(const std::string& source, std::string_view message) {
  throw_user_error("'{}' is not an array that can be read: {}", source, message);
}

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  struct Header {
    std::string descr;
    bool is_fortran = false;
    std::vector<int64_t> shape;
  };

  Header parse() {
    Header header;
    bool has_descr = false;
    bool has_shape = false;
    take("{");
    while (!try_take("}")) {
      std::string key = quoted();
      take(":");
      if (key == "descr") {
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.is_fortran = try_take("True");
        if (!header.is_fortran) take("False");
      } else if (key == "shape") {
        header.shape = shape();
        has_shape = true;
      } else {
        fail(source_, fmt::format("its header has the unknown key '{}'", key));
      }
      if (!try_take(",")) {
        take("}");
        break;
      }
    }
    if (!has_descr || !has_shape) fail(source_, "its header lacks 'descr' or 'shape'");
    return header;
  }

 private:
  void skip_space() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front()))) text_.remove_prefix(1);
  }
  bool try_take(std::string_view token) {
    skip_space();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void take(std::string_view token) {
    if (!try_take(token)) fail(source_, fmt::format("its header lacks a '{}'", token));
  }
  std::string quoted() {
    if (try_take("[")) fail(source_, "its dtype is a record");
    char quote = try_take("'") ? '\'' : '"';
    if (quote == '"') take("\"");
    size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail(source_, "its header has an open string");
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }
  int64_t number() {
    skip_space();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) fail(source_, "its shape is malformed");
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims;
    take("(");
    while (!try_take(")")) {
      dims.push_back(number());
      if (!try_take(",")) {
        take(")");
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  const std::string& source_;
};

// Parses "<f4" into kind and item size; returns true when the elements are big-endian.
bool parse_descr(const std::string& descr, const std::string& source, NpyHeader& header) {
  constexpr std::string_view kKinds = "fiubcV";
  int64_t size = 0;
  bool is_valid = descr.size() >= 3 && std::string_view("<>|=").find(descr[0]) != std::string_view::npos &&
                  kKinds.find(descr[1]) != std::string_view::npos;
  if (is_valid) {
    auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), size);
    is_valid = error == std::errc{} && end == descr.data() + descr.size();
  }
  constexpr int64_t kSizes[] = {1, 2, 4, 8, 16};
  if (!is_valid || std::find(std::begin(kSizes), std::end(kSizes), size) == std::end(kSizes)) {
    fail(source, fmt::format("its dtype is '{}'; plain numbers and bools can be read", descr));
  }
  header.kind = descr[1];
  header.item_bytes = size;
  return descr[0] == '>';
}

int64_t checked_size_bytes(const NpyHeader& header, const std::string& source) {
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) return 0;
  int64_t size = header.item_bytes;
  for (int64_t dim : header.shape) {
    if (size > std::numeric_limits<int64_t>::max() / dim) fail(source, "its shape is too large");
    size *= dim;
  }
  return size;
}

void check_bools(const NpyArray& array, const std::string& source) {
  if (array.item_bytes != 1) fail(source, fmt::format("its bools have {} bytes", array.item_bytes));
  for (const std::byte value : array.bytes) {
    if (value > std::byte{1})
      fail(source, fmt::format("it has a bool of {}, neither 0 nor 1", static_cast<int>(value)));
  }
}

void swap_bytes(NpyArray& array) {
  // A complex number is two numbers.
  auto width = static_cast<size_t>(array.kind == 'c' ? array.item_bytes / 2 : array.item_bytes);
  for (size_t i = 0; i < array.bytes.size(); i += width) {
    std::reverse(array.bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 array.bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
  }
}

// Column-major to row-major: an odometer over the row-major order that tracks the column-major position.
void make_row_major(NpyArray& array) {
  size_t rank = array.shape.size();
  auto item = static_cast<size_t>(array.item_bytes);
  std::vector<std::byte> dst(array.bytes.size());
  std::vector<size_t> strides(rank);
  size_t stride = item;
  for (size_t axis = 0; axis < rank; ++axis) {
    strides[axis] = stride;
    stride *= static_cast<size_t>(array.shape[axis]);
  }
  std::vector<int64_t> index(rank, 0);
  size_t src = 0;
  for (size_t at = 0; at < dst.size(); at += item) {
    std::memcpy(dst.data() + at, array.bytes.data() + src, item);
    for (size_t axis = rank; axis-- > 0;) {
      src += strides[axis];
      if (++index[axis] < array.shape[axis]) break;
      src -= strides[axis] * static_cast<size_t>(array.shape[axis]);
      index[axis] = 0;
    }
  }
  array.bytes = std::move(dst);
}

}  // namespace

size_t npy_head_bytes(std::span<const std::byte> prefix, const std::string& source) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (!text.starts_with(kMagic)) fail(source, "it does not begin as a .npy file does");
  if (text.size() < 10) fail(source, "it is truncated");
  const int version = text[6];
  if (version < 1 || version > 3) fail(source, fmt::format("its format version is {}", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (text.size() < 8 + length_bytes) fail(source, "it is truncated");
  uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, length_bytes);
  if (length > kMostHeaderBytes)
    fail(source, fmt::format("its header has {} bytes; at most {} are read", length, kMostHeaderBytes));
  return 8 + length_bytes + length;
}

NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& source) {
  const size_t head_bytes = npy_head_bytes(head, source);
  if (head_bytes > head.size()) fail(source, "it is truncated");
  const size_t begin = head[6] == std::byte{1} ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + begin, head_bytes - begin);
  HeaderParser::Header parsed = HeaderParser(text, source).parse();
  NpyHeader header{.shape = std::move(parsed.shape), .is_fortran = parsed.is_fortran, .head_bytes = head_bytes};
  header.is_big_endian = parse_descr(parsed.descr, source, header);
  header.data_bytes = checked_size_bytes(header, source);
  return header;
}

NpyArray make_npy(const NpyHeader& header, std::vector<std::byte> elements, const std::string& source) {
  NpyArray array{header.kind, header.item_bytes, header.shape, std::move(elements)};
  if (array.kind == 'b') check_bools(array, source);
  if (header.is_big_endian) swap_bytes(array);
  if (header.is_fortran && array.shape.size() > 1) make_row_major(array);
  return array;
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& source, const AdmitArray& admit) {
  const NpyHeader header = parse_npy_header(file, source);
  const std::span<const std::byte> data = file.subspan(header.head_bytes);
  if (std::ssize(data) < header.data_bytes) {
    fail(source, fmt::format("it has {} bytes of data where its shape asks for {}", data.size(), header.data_bytes));
  }
  if (admit) admit(header);
  return make_npy(header, {data.begin(), data.begin() + header.data_bytes}, source);
}

NpyArray read_npy(const std::filesystem::path& path, const AdmitArray& admit) {
  return parse_npy(MappedFile::open(path.string(), "array file")->bytes(), path.string(), admit);
}

NpyHeader read_npy_header(const std::filesystem::path& path) {
  return parse_npy_header(MappedFile::open(path.string(), "array file")->bytes(), path.string());
}

std::vector<std::byte> encode_npy(const NpyArray& array) {
  std::string shape;
  for (int64_t dim : array.shape) shape += fmt::format("{}, ", dim);
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.pop_back();
  char order = array.item_bytes == 1 ? '|' : '<';
  std::string header = fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}", order, array.kind,
                                   array.item_bytes, shape);
  constexpr size_t kPrefix = 10;
  header.resize((kPrefix + header.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  std::vector<std::byte> bytes(file.size() + array.bytes.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  std::copy(array.bytes.begin(), array.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(file.size()));
  return bytes;
}

void write_npy(const std::filesystem::path& path, const NpyArray& array) {
  std::vector<std::byte> bytes = encode_npy(array);
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  if (!stream.flush()) {
    throw_user_error("cannot write the array file '{}': {}", path.string(),
                     std::filesystem::is_directory(path) ? "it is a folder" : std::strerror(errno));
  }
}

}  // namespace headrace::tools
