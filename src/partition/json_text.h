// JSON with the place of each value, for files that people edit: an error shows the line and a caret.
//
//   {"version": 1, "ops": []}   ->   object at 0: "version" at 1: integer 1 at 12; "ops" ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::partition {

enum class JsonKind : uint8_t { kObject, kArray, kString, kInteger, kOther };  // other: null, true, 1.5

struct JsonKey {
  std::string text;
  size_t begin = 0, end = 0;  // bytes of the file
};

struct JsonText {
  JsonKind kind = JsonKind::kOther;
  std::string text = {};  // a string's characters, without escapes
  int64_t integer = 0;
  std::vector<JsonText> items = {};  // items of an array; the values of an object
  std::vector<JsonKey> keys = {};    // keys of an object, one for each item
  size_t begin = 0, end = 0;         // bytes of the file
};

// A text and the name that messages call it by.
struct NamedText {
  std::string text;
  std::string name;

  // Throws UserError with the line and column of text[begin, end), and that line.
  [[noreturn]] void fail(size_t begin, size_t end, const std::string& message) const;
};

// Reads a text in UTF-8 (RFC 8259), which may begin with a byte order mark, as some editors write it. UserError for
// wrong syntax, a key that an object has twice, an integer of more than 64 bits, and values nested deeper than 16
// levels.
JsonText parse_json_text(const NamedText& source);

}  // namespace headrace::partition
