// The types that a type is made of: the one place that knows them, under every walk over types.
#pragma once

#include <functional>

#include "ir/type.h"

namespace headrace {

// The direct parts: a tuple's items; a function's arguments, result, constraints; what a cell holds; a type call's
// callee and arguments; what a relation relates. Others have none. A function's type parameters are its own names and
// no parts. A part that is missing is null.
Array<Type> type_children(const Type& type);

// `type` with other parts, given as type_children gives them; `type` itself when all are the same. The span and a
// function's type parameters stay.
Type with_type_children(const Type& type, const Array<Type>& children);

// Each as `change` gives it; the very list where all stayed as they were.
template <typename F>
Array<Type> map_types(const Array<Type>& types, F&& change) {
  Array<Type> result = types;
  for (size_t i = 0; i < types.size(); ++i) {
    const Type before = types[i];
    if (Type after = change(before); after != before) result.set(i, std::move(after));
  }
  return result;
}

// `type` of parts as `change` gives them; the very type where all stayed as they were.
template <typename F>
Type map_type_children(const Type& type, F&& change) {
  return with_type_children(type, map_types(type_children(type), change));
}

// Whether `is_it` holds of the type or of one within it, null parts too. They are asked in the order of the text, each
// before its parts, to the first that it holds of, and a shared one once; a type may nest as deep as memory lets it.
bool any_type(const Type& type, const std::function<bool(const Type&)>& is_it);

}  // namespace headrace
