// Names in text: unique, and quoted where they are not identifiers.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "object/object.h"

namespace headrace {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Returns whether it may begin an identifier.
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
// Returns whether `text` matches [A-Za-z_][A-Za-z0-9_]*, or such words joined by dots when `dots` is set.
bool is_identifier(std::string_view text, bool dots = false);
// Returns the text in quotes, with \" \\ \n \t \r and \xNN.
std::string in_quotes(std::string_view text);

// Gives each object one name: its hint, made unique by a number.
class NameTable {
 public:
  const std::string& name_of(const Object* object, std::string_view hint, std::string_view fallback);
  bool knows(const Object* object) const { return names_.contains(object); }

 private:
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_map<std::string, int> next_;
  std::unordered_set<std::string> used_;
};

}  // namespace headrace
