// Rules that structural equality and structural hash share: which fields count, and which variables a field binds.
#pragma once

#include <algorithm>

#include "object/array.h"
#include "object/reflect.h"

namespace headrace::detail {

enum class DefMode : uint8_t {
  use,            // a variable is looked up
  def_once,       // a variable is bound; those in its own fields are looked up
  def_recursive,  // a variable is bound, after those in its own fields
};

inline bool has_field(const TypeInfo& type, bool FieldOptions::* mark) {
  return std::any_of(type.fields.begin(), type.fields.end(), [&](const FieldInfo& f) { return f.options.*mark; });
}

// Returns the kind under which nodes of `type` are compared. A type of variables with a field marked def_once holds
// variables that no binder introduces, such as types still to be inferred: nothing distinguishes two of them but their
// fields, so they compare as trees.
inline StructuralKind kind_of(const TypeInfo& type) {
  const bool is_plain = type.structural_kind == StructuralKind::var && has_field(type, &FieldOptions::def_once);
  return is_plain ? StructuralKind::tree : type.structural_kind;
}
// Returns whether a field visited in `mode` binds variables of `type` again each time it is met, for the node that has
// the field. A type of variables asks for this by a field of its own marked def_recursive: type parameters are bound
// so, because a function shares them with its type and one type may occur twice in a program. A hash takes such
// variables by their fields.
inline bool is_bound_anew(const TypeInfo& type, DefMode mode) {
  return mode == DefMode::def_once && type.structural_kind == StructuralKind::var &&
         has_field(type, &FieldOptions::def_recursive);
}

// Returns the value of a field of a node as it is compared.
inline Value compared_value(const FieldInfo& field, const Object* node) {
  Value value = field.get(node);
  return value.is_none() && field.options.when_none != nullptr ? field.options.when_none() : value;
}

inline bool counts(const FieldInfo& field) { return !field.options.ignore && !field.options.transient; }

// Calls `visit` with each field that counts, in the order in which fields are compared. The fields up to the last one
// marked def_recursive that bind variables come first: the attributes of a function, which its base class lists before
// the parameters, may mention these.
template <typename Visit>
void for_each_compared_field(const TypeInfo& type, const Visit& visit) {
  const auto& fields = type.fields;
  size_t end = fields.size();  // one behind the last field marked def_recursive
  while (end > 0 && !fields[end - 1].options.def_recursive) --end;
  const auto comes_first = [&](size_t i) {
    return i < end && (fields[i].options.def_recursive || fields[i].options.def_once);
  };
  for (size_t i = 0; i < end; ++i) {
    if (counts(fields[i]) && comes_first(i)) visit(fields[i]);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if (counts(fields[i]) && !comes_first(i)) visit(fields[i]);
  }
}

// Returns whether a node has nothing but a list without items, as the empty tuple. It is a constant: whether it is
// shared does not count, as in Relay.
inline bool is_empty_list(const Object* node) {
  const FieldInfo* list = nullptr;
  for (const FieldInfo& field : node->type_info().fields) {
    if (!counts(field)) continue;
    if (list != nullptr || !field.kind.starts_with("Array[")) return false;
    list = &field;
  }
  if (list == nullptr) return false;
  const Value value = list->get(node);  // may be the only owner of its items
  const auto* items = value.as_node<ArrayObj>();
  return items != nullptr && items->items.empty();
}

// Returns the mode in which a field of a node is visited that itself is visited in `mode`.
inline DefMode mode_of(const FieldInfo& field, const TypeInfo& type, DefMode mode) {
  if (field.options.def_recursive) return DefMode::def_recursive;
  if (field.options.def_once) return DefMode::def_once;
  if (type.structural_kind == StructuralKind::var && mode == DefMode::def_once) return DefMode::use;
  return mode;
}

}  // namespace headrace::detail
