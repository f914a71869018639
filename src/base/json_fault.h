// What is wrong with a JSON text.
#pragma once

#include <exception>
#include <string_view>

namespace headrace {

// What the JSON library says, without its own number for it: "[json.exception.parse_error.101] parse error at ...". As
// long as `error` lives.
inline std::string_view json_fault(const std::exception& error) {
  const std::string_view what = error.what();
  const size_t end = what.starts_with("[json.exception.") ? what.find("] ") : std::string_view::npos;
  return end == std::string_view::npos ? what : what.substr(end + 2);
}

}  // namespace headrace
