// The text form of relay, version 0.0.5: prints what parse.h reads back as an equal program.
//
//   #[version = "0.0.5"]
//   def @main(%x: Tensor[(n, 3), float32]) -> Tensor[(n, 3), float32] {
//     %0 = nn.relu(%x);
//     add(%0, 1f)
//   }
//
// Beyond what Relay users know:
// - A node used more than once is defined once, as `%k = ...;`, in the innermost scope that holds all its uses. Numbers
//   and names are unique within a top-level function; two variables of one name become %x and %x_1.
// - A name that is not an identifier is quoted: %"conv 1", @"main:0", ("batch size", 3).
// - Symbols of dimensions print by name, one name a symbol within a top-level function; type parameters do so, too.
//   In other scalar expressions `n:int32` and `3i32` have another dtype than int64. floordiv, floormod, min, max,
//   select are functions; `int32(n)` is a cast.
// - Scalars: 1 (int32), 1i64, 1u8, 1f (float32), 1f64, 1f16, 1bf16, True; nanf, -inff, nan(0x7fc00001)f (bits of a NaN
//   without the sign). Decimals are the shortest that read back to the same bits.
// - Tensors of at most 16 elements: const(Tensor[(2, 2), float32], [1, 2.5, nan, -inf]). Others, and those of vectors
//   (int8x4): meta[relay.Constant][i], with the bytes (little-endian, base64) in the #[metadata] block, or in
//   PrintOptions::weights.
// - Attributes that hold other objects: meta[KIND][i] with the object's type as KIND. The #[metadata] block has their
//   JSON (object/json.h). What such an object shares with the program is its own after reading.
// - `@id[int32](%x)` is a call with type arguments.
// - `&Nil` is the constructor Nil as a value; `Nil` is its call; `List::Nil` where an op or another type has the name.
// - `extern type Storage` is a data type without constructors.
// - `attrs=None` is a call without the attributes that its op has; `attrs_type_key="..."` names attributes of another
//   kind than the op's. Attributes at their default are left out.
// - `free_var %x: T;` lines before an expression declare variables bound outside of it.
// - prim[int32] is the scalar type that is not a tensor; `_` is a type to be inferred; [A: shape_var] has a kind.
// - fn [A, B](A, B) -> A where [add(A, B) -> A] is a function's type with a constraint: what the op says of types A and
//   B is A. It may have the op's attributes: where [nn.softmax(A, axis=0) -> A].
#pragma once

#include <functional>

#include "relay/expr.h"

namespace headrace::relay {

struct PrintOptions {
  // Without it, constants that are not inline have no data, and the text cannot be read back.
  bool show_meta_data = true;
  // Takes the data of meta[relay.Constant][i] as item i, each content once, instead of the metadata block. Contents
  // that it has from an earlier print keep their indices, so that texts of two programs have one numbering.
  std::vector<NDArray>* weights = nullptr;
  // Writes inferred types as comments behind calls, constants and other expressions that compute a value:
  // `%0 = nn.relu(%x) /* ty=Tensor[(2), float32] */;`. The text reads back as the same program.
  bool show_types = false;
  // Returns a comment that is printed behind an expression, where types are printed, too; "" for none. A result that is
  // a comment itself, /* ... */, is printed as it is.
  std::function<std::string(const Expr&)> annotate = {};
};

// Prints a module. Deterministic: equal modules with equal names give equal bytes. UserError on parts without a text
// form: attributes that hold objects without JSON, such as functions of the process; functions that
// are not relay's; names of types and constructors that are not identifiers; and whatever print_type (ir/type_text.h)
// refuses.
std::string print_module(const IRModule& module, const PrintOptions& options = {});
// Prints one expression.
std::string print_expr(const Expr& expr, const PrintOptions& options = {});
// Prints one type, with names of its own for its symbols; or the definition of a data type.
std::string type_text(const Type& type);

}  // namespace headrace::relay
