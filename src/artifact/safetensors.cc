#include "artifact/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace::artifact {
namespace {

constexpr size_t kAlignment = 64;

struct NamedType {
  std::string_view name;
  DataType dtype;
};
constexpr NamedType kTypes[] = {
    {"F64", DataType::float_(64)},  {"F32", DataType::float_(32)}, {"F16", DataType::float_(16)},
    {"BF16", DataType::bfloat16()}, {"I64", DataType::int_(64)},   {"I32", DataType::int_(32)},
    {"I16", DataType::int_(16)},    {"I8", DataType::int_(8)},     {"U64", DataType::uint(64)},
    {"U32", DataType::uint(32)},    {"U16", DataType::uint(16)},   {"U8", DataType::uint(8)},
    {"BOOL", DataType::bool_()},
};

}  // namespace

std::string_view safetensors_name(DataType dtype) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.dtype == dtype; });
  return row == std::end(kTypes) ? std::string_view() : row->name;
}

std::optional<DataType> safetensors_dtype(std::string_view name) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == name; });
  return row == std::end(kTypes) ? std::nullopt : std::optional(row->dtype);
}

std::string safetensors_head(std::span<const SafetensorsRow> rows, std::string_view format) {
  std::string header = fmt::format(R"({{"__metadata__":{{"format":"{}","version":"1"}})", format);
  uint64_t end = 0;
  for (const SafetensorsRow& row : rows) {
    const uint64_t begin = std::exchange(end, end + row.nbytes);
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", row.name, row.dtype,
                          fmt::join(row.shape, ","), begin, end);
  }
  header += "}";
  header.append((kAlignment - (kSafetensorsLengthBytes + header.size()) % kAlignment) % kAlignment, ' ');
  const uint64_t length = header.size();
  std::string head(kSafetensorsLengthBytes, '\0');
  std::memcpy(head.data(), &length, sizeof length);  // little-endian, as all we run on
  return head + header;
}

}  // namespace headrace::artifact
