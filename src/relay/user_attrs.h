// Attributes of ops that users register at run time: one node type for all of them. The op carries the schema of its
// attributes; one function checks calls made from C++, Python and text.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// A call's attributes by name. make_user_attrs stores every attribute of the op in the schema's order, defaults
// included; equality, hash and JSON are those of the map.
struct UserAttrsNode : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.UserAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<UserAttrsNode>& f);
  Map<std::string, Value> values;
};

enum class AttrKind : uint8_t { integer, real, boolean, text, dtype, shape, integers, reals };
// Returns the kind's name: "int", "float", "bool", "str", "dtype", "shape", "Array[int]", "Array[float]".
std::string_view name_of(AttrKind kind);
// Parses a kind's name. UserError that lists the kinds.
AttrKind parse_attr_kind(std::string_view name);

struct AttrSpec {
  std::string name;
  AttrKind kind = AttrKind::integer;
  Value default_value = {};  // None: the attribute must be given
  std::string doc = {};
};
using AttrSchema = std::vector<AttrSpec>;
// The schema of an op that a user registered; built-in ops have a struct instead.
inline constexpr OpKey<AttrSchema> kAttrSchema{"AttrSchema"};

// Adds an attribute to `op`. UserError: a name that is not an identifier or is taken, also by an argument; a default of
// another kind. lower/user_ops/parameter_names.h checks further names that callers could not give or read.
void add_attr(OpNode& op, AttrSpec spec);
// Adds an argument to `op`; the number of inputs stays.
void add_argument(OpNode& op, OpArgument argument);

// Returns the attributes of a call of `op` with defaults filled in; null for an op without attributes. UserError that
// names the op: an attribute that it does not have, or one that is missing, given twice, or of another kind.
Attrs make_user_attrs(const OpNode& op, const std::vector<std::pair<std::string, Value>>& given);
// Returns what is wrong with `attrs` as the attributes of a call of `op`, which has a schema; empty when they are
// valid. Attributes with a default may be missing, because the op may have got them after the call was made or saved.
// Nodes made field by field, or saved when the op had other attributes, may contain anything.
std::string user_attrs_fault(const OpNode& op, const Attrs& attrs);
// Returns `attrs` with missing attributes at their defaults, and anything else unchanged.
Attrs whole_user_attrs(const OpNode& op, const Attrs& attrs);

// Returns one attribute of a call that was checked. UserError that names it when the call has no such attribute.
Value user_attr(const CallNode& call, std::string_view name);

}  // namespace headrace::relay
