// Ops whose number of results depends on the data: argwhere, argwhere_bounded, unique.
//
// There are two forms. argwhere returns exactly its results, of a size `?` in the type: the interpreter runs it, and
// native code, whose buffers are planned, runs it as a result of the program (passes/forms/bound_outputs.h). The others
// return a buffer of the largest possible size, and the number of valid elements: every executor runs them.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct UniqueAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.UniqueAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<UniqueAttrs>& f);
  bool sorted = true;
  bool return_counts = false;
};

Expr argwhere(Expr condition, Span span = {});
// Returns a tuple, as the op's doc says.
Expr unique(Expr data, bool sorted, bool return_counts, Span span = {});

}  // namespace headrace::ops
