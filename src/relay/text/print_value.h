// Attribute values as text.
#pragma once

#include "relay/text/print_literal.h"
#include "relay/text/print_names.h"
#include "relay/user_attrs.h"

namespace headrace::relay {

// Prints values of attributes; holds the table of constants and the names of symbols.
struct ValuePrinter {
  MetaTable& constants;
  PrintNames& names;
  // The parameters of the function whose attributes are printed; values refer to them by name, as %x. Null elsewhere.
  const Array<Var>* params = nullptr;

  // Prints a value; with `in_dtype_field` a dtype is written as plain "float32", as version 0.0.5 does.
  void print(std::string& out, const Value& value, bool in_dtype_field = false) const;
  // Prints an inline constant or meta[relay.Constant][i].
  void print_constant(std::string& out, const NDArray& data) const;
  // Prints `key=value` for the fields of `attrs` that are not at their default, each after ", ".
  void print_attrs(std::string& out, const Object& attrs) const;
  // Prints attributes that have `schema`.
  void print_user_attrs(std::string& out, const AttrSchema& schema, const UserAttrsNode& attrs) const;
};

// Returns a variable's name: %x, or %"1" for a name that is not an identifier.
std::string var_text(PrintNames& names, const VarNode& var);

// Returns `name`, or "name" in quotes when it is not an identifier.
std::string key_text(const std::string& name);

}  // namespace headrace::relay
