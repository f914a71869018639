// What structural equality and hash share: which fields count, and whether variables met in them are bound there.
#pragma once

#include <algorithm>

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

// A type of variables says by a mark on a field of its own that its variables are not bound once in a program.
// def_once: by nothing. Nothing tells two of them apart, such as types to be inferred: they are what their fields say.
inline StructuralKind kind_of(const TypeInfo& type) {
  const bool is_plain = type.structural_kind == StructuralKind::var && has_field(type, &FieldOptions::def_once);
  return is_plain ? StructuralKind::tree : type.structural_kind;
}
// def_recursive: by every field marked def_once that they are met in, for the node that has it: type parameters, which
// a function shares with its type, and a type with itself where it stands twice. In a hash they are what their fields
// say.
inline bool is_bound_anew(const TypeInfo& type, DefMode mode) {
  return mode == DefMode::def_once && type.structural_kind == StructuralKind::var &&
         has_field(type, &FieldOptions::def_recursive);
}

inline bool counts(const FieldInfo& field) { return !field.options.ignore && !field.options.transient; }

// The mode in which a field of a node is visited that itself is visited in `mode`.
inline DefMode mode_of(const FieldInfo& field, const TypeInfo& type, DefMode mode) {
  if (field.options.def_recursive) return DefMode::def_recursive;
  if (field.options.def_once) return DefMode::def_once;
  if (type.structural_kind == StructuralKind::var && mode == DefMode::def_once) return DefMode::use;
  return mode;
}

}  // namespace headrace::detail
