// Turns an exception of the JSON library into a message.
#pragma once

#include <exception>
#include <string_view>

namespace headrace {

// Returns the JSON library's message without the library's prefix "[json.exception.parse_error.101] ". The view is
// valid as long as `error` lives.
inline std::string_view json_fault(const std::exception& error) {
  const std::string_view what = error.what();
  const size_t end = what.starts_with("[json.exception.") ? what.find("] ") : std::string_view::npos;
  return end == std::string_view::npos ? what : what.substr(end + 2);
}

}  // namespace headrace
