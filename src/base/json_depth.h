// Checks how deep a JSON text nests, for readers of texts that strangers write.
#pragma once

#include <string_view>

#include "base/error.h"

namespace headrace {

// Throws UserError if the text nests deeper than `max_depth` levels. Call before parsing, because the parser takes
// memory for every level. A callback of the parser would take quadratic time on lists: after each object in a list the
// parser searches the whole list for dropped items.
inline void check_json_depth(std::string_view text, int max_depth) {
  int depth = 0;
  bool is_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_string && c == '\\') {
      ++i;  // an escaped character does not end a string
    } else if (c == '"') {
      is_string = !is_string;
    } else if (!is_string && (c == '[' || c == '{')) {
      if (++depth > max_depth) throw_user_error("it nests deeper than {} levels", max_depth);
    } else if (!is_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
}

}  // namespace headrace
