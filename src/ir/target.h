// Target: the machine and the options that code is generated for: a kind, its options, keys for code to query, a host.
//
//   llvm -keys=cpu -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -mattr=+avx2,-avx512f -num-cores=4
//   {"kind": "llvm", "mcpu": "znver4"}
//   cpu/znver4                                                              a tag (ir/target_tag.h)
//
// ir/target_kind.h has the kinds and their options. The code generator checks whether LLVM knows a processor.
#pragma once

#include "ir/target_kind.h"

namespace headrace {

struct TargetNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "Target";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<TargetNode>& f);
  TargetKind kind;
  Ref<TargetNode> host;           // null: its own host
  std::string tag;                // the name it was made by; empty: none. Says nothing of the code: no part of equality
  Array<std::string> keys;        // the given ones, then the kind's
  Map<std::string, Value> attrs;  // by option, in the kind's order: those given, and those with a default

  // Return the value of an option; empty, or 0, when it is not given.
  std::string text(const std::string& option) const;
  Array<std::string> list(const std::string& option) const;
  int64_t count(const std::string& option) const;
};
using Target = Ref<TargetNode>;

// Makes a target. `options` are the kind's, "keys" (Array[str]), "host" (as to_target takes it) and "tag" (str); None
// means not given. UserError that lists the valid choices: an unknown kind or option, an option that the kind refuses
// (with its reason), a value of the wrong kind or range, a host that has a host.
Target make_target(const std::string& kind, const Map<std::string, Value>& options = {});

// Makes a target from one map whose entry "kind" is the kind.
Target make_target_from_config(const Map<std::string, Value>& config);

// Parses the text form, the JSON form or a tag. In a text two dashes are as good as one, and a value with blanks is
// quoted: -host='llvm -mcpu=znver4'. UserError as make_target, and for an option that is given twice, has no value or
// is not an option, an unmatched quote, or text that is not JSON.
Target parse_target(std::string_view text);

// Converts a target, a target's text, or a map as make_target_from_config takes it. UserError as those functions, and
// for any other value.
Target to_target(const Value& value);

// Returns the target with another host; null removes the host.
Target with_host(const Target& target, const Target& host);

// Returns the target as a map of "kind", "tag", "keys", "host" where there is one (as a map), and the options;
// make_target_from_config makes an equal target of it.
Map<std::string, Value> export_target(const Target& target);

// Makes the target again from its parts and so checks them: a node that was read from JSON or changed field by field
// may have parts that its kind does not know. UserError as make_target.
Target checked_target(const Target& target);

// Returns the text form, options in the kind's order, without the tag; parse_target returns an equal target.
std::string to_string(const Target& target);

}  // namespace headrace
