// The text form of patterns, for files, command lines and plugins.
//
// Ops by name, `_` for anything, `const` for a constant:
//   nn.relu(nn.bias_add(nn.conv2d(_, const), _))
// %0 is one node in two places; of alternatives the left one counts first:
//   %0 = nn.conv2d(_, _);
//   %0 or nn.relu(%0)
// %0 is a wildcard that stands for a pattern with itself in it:
//   rec %0 = cast(%0) or nn.dense(_, _);
//   cast(%0)
// A tuple of any number of fields; likewise f(*) of arguments and fn(*) of parameters:
//   concatenate(tuple(*))
// Further conditions of a match:
//   nn.conv2d(_, _)[attrs data_layout="NCHW", kernel_size=[3, 3]][dtype float32][shape (1, ?, 3)]
//
// The grammar; infix operators group to the left:
//   pattern    := { definition ";" } choice
//   definition := [ "rec" ] %NAME "=" choice
//   choice     := sum { "or" sum }
//   sum        := product { ("+" | "-") product }
//   product    := postfix { ("*" | "/") postfix }
//   postfix    := primary { "(" list ")" | "[" constraint "]" }
//   list       := "*" | [ choice { "," choice } ]
//   three      := "(" choice "," choice "," choice ")"
//   primary    := "_" | "const" | "var" [ "(" STRING ")" ] | OP_NAME | "op" "(" STRING ")" | %NAME
//               | "(" choice ")" | "expr" "(" STRING ")" | "tuple" "(" list ")"
//               | "item" "(" choice [ "," INTEGER ] ")" | "fn" "(" list ")" "{" choice "}"
//               | "if" three | "let" three | "dominates" three
//   constraint := "type" STRING | "dtype" WORD | "shape" "(" [ dim { "," dim } ] ")"
//               | "attrs" [ NAME "=" value { "," NAME "=" value } ]
//   dim        := INTEGER | "?"
//   value      := INTEGER | REAL | STRING | "True" | "False" | "[" [ value { "," value } ] "]"
//
// The string of `expr` is an expression, that of `type` a type, both as Relay's text. The names of definitions are
// known after them, those of `rec` in the whole pattern. An op whose name is a word above is written op("name").
// Comments are those of Relay's text.
//
// A table of patterns is { name: pattern, ... }, in the order of their priority. A pattern with definitions stands in
// braces of its own there:
//   { "x.conv_relu": { %0 = nn.conv2d(_, _); %0 or nn.relu(%0) }, x.add: add(_, _) }
#pragma once

#include "relay/patterns/pattern.h"

namespace headrace::relay {

// Texts of more bytes are refused.
inline constexpr size_t kMaxPatternText = 1 << 20;

// Returns the text, which reads back as an equal pattern. UserError on parts without a text: values of attributes that
// the grammar lacks, shapes of symbols, expressions that relay/text refuses.
std::string print_pattern(const DFPattern& pattern);

// Reads a text. The pattern of one with `rec` stays in memory until release_recursions. UserError that lists all errors
// with line, column and the line itself: bad grammar, an unknown op or name, text that nests deeper than 200 levels.
// Linear in the text.
DFPattern parse_pattern(std::string_view text, const std::string& source_name = "<pattern>");

struct NamedPattern {
  std::string name;
  DFPattern pattern;
};
std::vector<NamedPattern> parse_pattern_table(std::string_view text, const std::string& source_name = "<patterns>");

// Returns whether a word of the text form is not an op's name where it stands alone.
bool is_pattern_word(std::string_view word);

}  // namespace headrace::relay
