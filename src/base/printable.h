// Names from files, as messages may show them: a model must not be able to write lines of its own.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Writes each control character (newlines included) and each byte that is not UTF-8 as `\x0a`. All else stays.
std::string escaped(std::string_view text);

// Returns a name as `escaped` writes it, in single quotes; only its first 80 bytes, with "...", if it has more.
std::string printable(std::string_view name);

}  // namespace headrace
