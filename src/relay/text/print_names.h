// The names of a relay program in text.
#pragma once

#include "ir/text_names.h"
#include "ir/type.h"

namespace headrace::relay {

// Words that mean something where a dimension or a type is expected.
bool is_reserved_word(std::string_view text);
// Whether it may be the name of a type or a constructor: `None` is, though it is a value of attributes, too.
bool can_name_type(std::string_view text);

// The names of one top-level function.
struct PrintNames {
  NameTable vars, symbols, type_vars;
};

}  // namespace headrace::relay
