#include "ops/tensor/onnx_node_fields.h"

#include <cstdint>
#include <string_view>

namespace headrace::ops {
namespace {

// Field numbers of NodeProto in onnx.proto.
enum NodeField : uint64_t { kInput = 1, kOutput = 2, kOpType = 4, kDomain = 7 };

// Reads a message field by field. Every reader returns nothing where the bytes end too early.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : left_(bytes) {}
  bool is_at_end() const { return left_.empty(); }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint64_t>(left_[0]);
      left_ = left_.subspan(1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  // Returns the bytes of a field with a length; an empty text for one of another kind, which is skipped.
  std::optional<std::string_view> content(uint64_t wire_type) {
    std::optional<uint64_t> size = 0;
    if (wire_type == 0) return varint() ? std::optional(std::string_view()) : std::nullopt;
    if (wire_type == 1) size = 8;
    if (wire_type == 5) size = 4;
    if (wire_type == 2) size = varint();
    const bool is_known = wire_type == 1 || wire_type == 2 || wire_type == 5;
    if (!is_known || !size || *size > left_.size()) return std::nullopt;
    const auto taken = left_.first(static_cast<size_t>(*size));
    left_ = left_.subspan(taken.size());
    if (wire_type != 2) return std::string_view();
    return std::string_view(reinterpret_cast<const char*>(taken.data()), taken.size());
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace

std::optional<OnnxNodeFields> read_onnx_node(std::span<const std::byte> bytes) {
  OnnxNodeFields fields;
  std::string_view op_type, domain;
  for (WireReader in(bytes); !in.is_at_end();) {
    const std::optional<uint64_t> tag = in.varint();
    if (!tag) return std::nullopt;
    const std::optional<std::string_view> content = in.content(*tag & 7);
    if (!content) return std::nullopt;
    const uint64_t field = *tag >> 3;
    if (field == kInput) fields.num_inputs += content->empty() ? 0 : 1;
    if (field == kOutput) ++fields.num_outputs;
    if (field == kOpType) op_type = *content;
    if (field == kDomain) domain = *content;
  }
  if (!domain.empty() && domain != "ai.onnx") fields.op = std::string(domain) + ".";
  fields.op += op_type;
  return fields;
}

}  // namespace headrace::ops
