// Target: what code is made for, as users write it: a kind and its options.
//
//   llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr=+avx2,-avx512f -num-cores=4
//
// The kinds and their options are one table in target.cc. Whether LLVM knows a processor is the code generator's to
// say.
#pragma once

#include "object/array.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace {

struct TargetNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "Target";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<TargetNode>& f);
  std::string kind;
  Map<std::string, Value> attrs;  // by option, in the table's order: str, Array of str, or int; only those given

  // What was given; empty, or 0, when nothing was.
  std::string text(const std::string& option) const;
  Array<std::string> list(const std::string& option) const;
  int64_t count(const std::string& option) const;
};
using Target = Ref<TargetNode>;

// A list may be given as one text with commas; None is not given. UserError that says what there is: an unknown kind or
// option, a value of another type, a text that is no single word, a count below 1.
Target make_target(const std::string& kind, const Map<std::string, Value>& attrs = {});

// Reads the text form; two dashes are as good as one. UserError as above, and for an option that is given twice, has no
// value or is no option.
Target parse_target(std::string_view text);

// The text form, options in the table's order: parse_target gives an equal target.
std::string to_string(const Target& target);

}  // namespace headrace
