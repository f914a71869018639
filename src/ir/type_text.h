// The text form of types and dimensions, which program texts and messages write and relay/text reads.
//
//   Tensor[(n, ?, 3), float32]   float32   (int32,)   ref(T)   List[int32]   prim[handle]   _
//   fn [A, B: shape_var](A, B) -> A where [add(A, B) -> A, nn.softmax(A, axis=0) -> B]
//
// A constraint reads as a call of the op whose relation it is. Linear in the text; constant stack.
#pragma once

#include <functional>

#include "ir/text_names.h"
#include "ir/type.h"

namespace headrace {

// The names that one text gives to symbols and type parameters, one each.
struct TypeNames {
  NameTable symbols, type_vars;
  // Writes a constraint's attributes, each after ", ". Without it one that has any has no text form.
  std::function<void(std::string& out, const TypeRelationNode& relation)> print_attrs;
};

// Writes a type. UserError on one without a text form: names of types that are not identifiers, missing parts,
// constraints with another number of results than one, dimensions that no shape arithmetic produces, definitions of
// data types, and more than 2^22 parts.
void print_type(std::string& out, const Type& type, TypeNames& names);
void print_dim(std::string& out, const PrimExpr& dim, TypeNames& names);
// Writes `[A, B: shape_var]`, or nothing when there are none.
void print_type_params(std::string& out, const Array<TypeVar>& params, TypeNames& names);

// Words that mean something where a dimension or a type is expected.
bool is_reserved_word(std::string_view text);
// Returns whether `text` may name a type or a constructor; `None` may, although it is also a value of attributes.
bool can_name_type(std::string_view text);
// Returns the name of a type or constructor in text form; UserError when it cannot be one.
std::string checked_type_name(const std::string& name);

}  // namespace headrace
