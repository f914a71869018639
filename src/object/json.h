// Object graphs as JSON, by reflection: every node type with fields or saved content, nothing by hand.
//
//   {"headrace": "object graph", "version": 1, "root": [2], "nodes": [
//     ["ir.GlobalVar", {"name_hint": "main"}],
//     ["object.Array", [[0], 1, "text"]],
//     ["object.Map", [["key", [1]]]]]}
//
// A node is listed once, after the nodes it refers to. Where a value stands, [i] is node i, [] an empty Array, {} an
// empty Map; null, true, 1, 1.0 and "text" are None, a bool, an int, a float, a string; {"float": "inf"}, {"bytes":
// "base64"}, {"text": "base64"} (a string that is not UTF-8), {"shape": [2, 3]}, {"dtype": [code, bits, lanes]} and
// {"device": [type, id]} are the rest. Transient fields are not saved; None is not either, in an optional field.
//
// Version 1 is the only one there is; a reader takes versions 1 to 1 and says so of others.
#pragma once

#include "object/value.h"

namespace headrace {

// Writes a graph; equal graphs give equal texts. UserError naming the kind of a value that has no form: pointers,
// functions, modules. Constant stack, linear time.
std::string save_json(const Value& root);

// As save_json, but without the content of nodes of the type `key`: these go to `apart`, and the text has
// {"apart": i} as the content of the i-th of them. Callers that compare graphs compare their content themselves,
// without its text. load_json does not read such a text.
std::string save_json_apart(const Value& root, std::string_view key, std::vector<Value>& apart);

// Reads a graph, with the sharing it had. Node types must be registered before (ops/all_ops.h and tir/stmt.h register
// theirs). UserError with the place in the text, or the node, for anything that save_json does not write: wrong syntax,
// nesting, types, fields, references to later nodes. Constant stack.
Value load_json(std::string_view text, const std::string& source_name = "<json>");

// Lets older files be read: `upgrade` may change the fields of each node of type `key` before the node is made of them.
// Call it where the type is registered.
void set_json_upgrade(std::string key, void (*upgrade)(NamedValues& fields));

}  // namespace headrace
