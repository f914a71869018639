// What structural equality and hash share: which fields count, and whether variables met in them are bound there.
#pragma once

#include "object/reflect.h"

namespace headrace::detail {

enum class DefMode : uint8_t {
  use,            // a variable is looked up
  def_once,       // a variable is bound; those in its own fields are looked up
  def_recursive,  // a variable is bound, after those in its own fields
};

// How nodes of the type are compared and hashed. A variable that nothing tells from another of its type, such as a type
// to be inferred, marks a field of its own def_once: it is what its fields say, wherever it stands.
inline StructuralKind kind_of(const TypeInfo& type) {
  if (type.structural_kind != StructuralKind::var) return type.structural_kind;
  for (const FieldInfo& field : type.fields) {
    if (field.options.def_once) return StructuralKind::tree;
  }
  return StructuralKind::var;
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
