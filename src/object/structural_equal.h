// Structural equality of values: node graphs, with binders, sharing and free variables.
//
// By StructuralKind of the node's type (both sides have one type):
//   tree      equal when all fields are; as are variables that mark a field of their own def_once
//   dag       as tree, and a node met again on one side must be met again, as the same one, on the other
//   constant  equal at once when it is one node on both sides; else as tree
//   unique    equal only to itself
//   var       equal when bound at the corresponding place. A field marked def_once binds the variables that are met in
//             it (through arrays and nodes); def_recursive also those met in the bound variables' own fields, such as
//             the symbols of a parameter's type. A variable is bound once in a program: what it corresponds to holds
//             from there to the end; but each type and function binds its type parameters anew. A free variable
//             equals itself; with `map_free_vars`, one variable of the other side whose fields are equal.
// Fields count in the order they are listed, so a binding field is listed before what it scopes over; but those up to
// the last one marked def_recursive that bind come first, so that the attributes of a function may mention its
// parameters. Fields marked ignore or transient do not count.
// Floats are equal by their bits, so 0.0 differs from -0.0; all NaNs are equal. An int is not equal to a bool or a
// float of its value. The order of a Map's entries does not count. Keys that are numbers or strings pair by content;
// keys that are nodes pair with what they correspond to already, else with themselves, else with the first key of the
// same hash.
//
// Linear in the number of pairs of nodes; constant stack.
#pragma once

#include <optional>

#include "object/structural_hash.h"

namespace headrace {

struct Mismatch {
  std::string path;  // from the root: ".body.args[1].name_hint", ".attrs[\"axis\"]"; empty for the root itself
  std::string reason;
  std::string left;  // short texts of the two values there; "(missing)" when a side has none
  std::string right;
};

bool structural_equal(const Value& a, const Value& b, StructuralOptions options = {});
// Returns the first difference in the order of fields; nothing when the values are equal.
std::optional<Mismatch> first_mismatch(const Value& a, const Value& b, StructuralOptions options = {});
// Throws a UserError with the first mismatch, if there is one.
void assert_structural_equal(const Value& a, const Value& b, StructuralOptions options = {});

}  // namespace headrace
