#include "relay/text/print_literal.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ir/type.h"
#include "ir/text_names.h"
#include "object/base64.h"
#include "object/json.h"
#include "ir/text_literal.h"

namespace headrace::relay {

namespace {

constexpr int64_t kMaxInlineElements = 16;

// Returns element i as an integer of the element's size, zero-extended.
uint64_t raw_element(const NDArray& data, int64_t i) {
  const size_t size = data.dtype().bytes();
  uint64_t bits = 0;
  std::memcpy(&bits, data.bytes().data() + static_cast<size_t>(i) * size, size);  // little-endian, as all we run on
  return bits;
}

// Returns a number in two parts, so that a suffix can follow: "-nan(0x7fc00001)" + "f".
std::string float_element(const NDArray& data, int64_t i) {
  const double value = element_as_double(data.tensor(), i);
  if (!std::isnan(value))
    return data.dtype().bits() == 64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  const int bits = data.dtype().bits();
  const uint64_t raw = raw_element(data, i);
  const uint64_t sign = uint64_t{1} << (bits - 1);
  const uint64_t quiet = bits == 64                   ? 0x7ff8000000000000u
                         : bits == 32                 ? 0x7fc00000u
                         : data.dtype().is_bfloat16() ? 0x7fc0u
                                                      : 0x7e00u;
  std::string text = (raw & sign) != 0 ? "-nan" : "nan";
  if ((raw & ~sign) != quiet) text += fmt::format("(0x{:x})", raw & ~sign);
  return text;
}

std::string int_element(const NDArray& data, int64_t i) {
  const uint64_t raw = raw_element(data, i);
  if (data.dtype().is_uint()) return fmt::format("{}", raw);
  const int shift = 64 - static_cast<int>(data.dtype().bytes()) * 8;
  return fmt::format("{}", static_cast<int64_t>(raw << shift) >> shift);
}

std::string element_text(const NDArray& data, int64_t i) {
  if (data.dtype().is_bool()) return raw_element(data, i) != 0 ? "True" : "False";
  return data.dtype().is_float() ? float_element(data, i) : int_element(data, i);
}

bool has_literal(const NDArray& data) {
  const DataType dtype = data.dtype();
  if (!literal_suffix(dtype)) return false;
  if (!dtype.is_bool() && !dtype.is_narrow_int()) return !dtype.is_float() || dtype.bits() >= 16;
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    // The byte of an element that other programs wrote may hold what no literal says.
    const auto number = static_cast<uint8_t>(element_as_int(data.tensor(), i));
    if (raw_element(data, i) != number) return false;
  }
  return true;
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  return fmt::format("{}", value);
}

std::optional<std::string> inline_constant_text(const NDArray& data) {
  if (data.num_elements() > kMaxInlineElements || !has_literal(data)) return std::nullopt;
  if (data.shape().empty()) return element_text(data, 0) + *literal_suffix(data.dtype());
  std::vector<std::string> items;
  for (int64_t i = 0; i < data.num_elements(); ++i) items.push_back(element_text(data, i));
  const std::string type = fmt::format("Tensor[({}), {}]", fmt::join(data.shape(), ", "), data.dtype());
  return fmt::format("const({}, [{}])", type, fmt::join(items, ", "));
}

size_t MetaTable::index_of(const NDArray& data) {
  const uint64_t hash = data.content_hash();
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (items_[it->second].content_equal(data)) return it->second;
  }
  by_hash_.emplace(hash, items_.size());
  items_.push_back(data);
  return items_.size() - 1;
}

size_t MetaTable::index_of(const ObjectRef& node) {
  const std::string json = save_json(Value(node));
  std::vector<std::string>& known = nodes_[std::string(node->key())];
  const auto found = std::find(known.begin(), known.end(), json);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  known.push_back(json);
  return known.size() - 1;
}

void print_metadata(std::string& out, const std::vector<NDArray>& constants, const MetaNodes& nodes) {
  out += "\n#[metadata]\n{\n  \"version\": 1";
  for (const auto& [key, texts] : nodes) {
    out += fmt::format(",\n  {}: [\n", in_quotes(key));
    for (size_t i = 0; i < texts.size(); ++i)
      out += fmt::format("    {}{}\n", in_quotes(texts[i]), i + 1 < texts.size() ? "," : "");
    out += "  ]";
  }
  if (constants.empty()) {
    out += "\n}\n";
    return;
  }
  out += ",\n  \"relay.Constant\": [\n";
  for (size_t i = 0; i < constants.size(); ++i) {
    const NDArray& data = constants[i];
    out += fmt::format("    {{\"dtype\": \"{}\", \"shape\": [{}], \"data\": \"", data.dtype(),
                       fmt::join(data.shape(), ", "));
    out += encode_base64(data.bytes());
    out += i + 1 < constants.size() ? "\"},\n" : "\"}\n";
  }
  out += "  ]\n}\n";
}

}  // namespace headrace::relay
