// Attributes of ops that users register at run time: one node type for all of them. What an op takes is the schema that
// the op itself carries; calls made from C++, Python and text are checked by the same function.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// A call's attributes by name. Made by make_user_attrs they hold every attribute of the op, also those at their
// defaults, in the schema's order: equality, hash and JSON are the map's.
struct UserAttrsNode : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.UserAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<UserAttrsNode>& f);
  Map<std::string, Value> values;
};

enum class AttrKind : uint8_t { integer, real, boolean, text, dtype, shape, integers, reals };
// "int", "float", "bool", "str", "dtype", "shape", "Array[int]", "Array[float]"
std::string_view name_of(AttrKind kind);
// UserError that lists the kinds there are.
AttrKind parse_attr_kind(std::string_view name);

struct AttrSpec {
  std::string name;
  AttrKind kind = AttrKind::integer;
  Value default_value = {};  // None: the attribute must be given
  std::string doc = {};
};
using AttrSchema = std::vector<AttrSpec>;
// Of ops that users registered; an op of ours has a struct of its own instead.
inline constexpr OpKey<AttrSchema> kAttrSchema{"AttrSchema"};

// Adds an attribute to `op`. UserError: a name that is no identifier or is taken, also by an argument, a default of
// another kind. What else callers cannot give or read, lower/user_ops/parameter_names.h knows.
void add_attr(OpNode& op, AttrSpec spec);
// The same for an argument; the number of inputs stays.
void add_argument(OpNode& op, OpArgument argument);

// The attributes of a call of `op`, the defaults filled in; null for an op without attributes. UserError that names the
// op: an attribute that it does not have, that is missing, given twice, or of another kind.
Attrs make_user_attrs(const OpNode& op, const std::vector<std::pair<std::string, Value>>& given);
// What is wrong with `attrs` as those of a call of `op`, which has a schema; empty when they are as make_user_attrs
// makes them, also where some with a default are left out: those that the op got after the call was made or saved.
// Nodes that were made field by field, or saved when the op had other attributes, may be anything.
std::string user_attrs_fault(const OpNode& op, const Attrs& attrs);
// The same with those that are left out at their defaults; anything else as it is.
Attrs whole_user_attrs(const OpNode& op, const Attrs& attrs);

// The attribute of a call that was checked. UserError that names it when the call has none of that name.
Value user_attr(const CallNode& call, std::string_view name);

}  // namespace headrace::relay
