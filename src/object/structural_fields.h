// What structural equality and hash share: which fields count, and whether variables met in them are bound there.
#pragma once

#include "object/reflect.h"

namespace headrace::detail {

enum class DefMode : uint8_t {
  use,            // a variable is looked up
  def_once,       // a variable is bound; those in its own fields are looked up
  def_recursive,  // a variable is bound, after those in its own fields
};

inline bool counts(const FieldInfo& field) { return !field.options.ignore && !field.options.transient; }

// The mode in which a field of a node is visited that itself is visited in `mode`.
inline DefMode mode_of(const FieldInfo& field, const TypeInfo& type, DefMode mode) {
  if (field.options.def_recursive) return DefMode::def_recursive;
  if (field.options.def_once) return DefMode::def_once;
  if (type.structural_kind == StructuralKind::var && mode == DefMode::def_once) return DefMode::use;
  return mode;
}

}  // namespace headrace::detail
