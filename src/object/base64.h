// Base64 with padding (RFC 4648): bytes in text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

std::string encode_base64(std::span<const std::byte> bytes);
// Decodes a text. UserError when it is not base64.
std::vector<std::byte> decode_base64(std::string_view text);

}  // namespace headrace
