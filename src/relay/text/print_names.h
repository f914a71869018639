// The names of a relay program in text.
#pragma once

#include "ir/type_text.h"

namespace headrace::relay {

// Returns whether a call of an op of that name reads back as it prints: the name is words joined by dots and means
// nothing else.
bool can_name_op(std::string_view text);
// Returns the name of the op that replaces an op of old texts: "nn.conv2d" for "nn.contrib_conv2d_NCHWc" and its
// depthwise kin, "annotation.compiler_begin" for "annotation.subgraph_begin", "reshape" for "dyn.reshape", which took a
// shape (or slices, sizes, widths) as an argument; dyn_operands.h turns some of these arguments into attributes.
std::string_view current_op_name(std::string_view op);
// Returns whether `text` begins with a number that is a word: nan or inf, with or without a suffix.
bool reads_as_number(std::string_view text);

// The names of one top-level function.
struct PrintNames : TypeNames {
  NameTable vars;
};

}  // namespace headrace::relay
