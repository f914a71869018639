// The types that a type is made of: the one place that knows them, under every walk over types.
#pragma once

#include <functional>

#include "ir/type.h"

namespace headrace {

// Returns the direct parts of a type: a tuple's fields; a function's arguments, result and constraints; the content of
// a reference cell; a type call's callee and arguments; a relation's arguments. Other types have none. A function's
// type parameters are its own names and not parts. A missing part is null.
Array<Type> type_children(const Type& type);

// Returns `type` with other parts, in the order of type_children; `type` itself when all are the same. The span and a
// function's type parameters stay.
Type with_type_children(const Type& type, const Array<Type>& children);

// Applies `change` to each type; returns the same list when none changed.
template <typename F>
Array<Type> map_types(const Array<Type>& types, F&& change) {
  Array<Type> result = types;
  for (size_t i = 0; i < types.size(); ++i) {
    const Type before = types[i];
    if (Type after = change(before); after != before) result.set(i, std::move(after));
  }
  return result;
}

// Applies `change` to the parts of `type`; returns `type` itself when none changed.
template <typename F>
Type map_type_children(const Type& type, F&& change) {
  return with_type_children(type, map_types(type_children(type), change));
}

// Returns whether `is_it` holds for the type or a type within it, null parts included. Asks in the order of the text,
// outer types first, stops at the first match, and asks once about a shared type. Nesting is limited only by memory.
bool any_type(const Type& type, const std::function<bool(const Type&)>& is_it);

}  // namespace headrace
