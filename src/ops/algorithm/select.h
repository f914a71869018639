// Ops with as many results as the data says: argwhere, argwhere_bounded, unique.
//
// Two forms. argwhere gives just its results, of a size `?` that the type does not tell: the interpreter runs it,
// native code, whose buffers are planned, where it is a result of the program (passes/forms/bound_outputs.h). The
// others give a buffer of the most there can be, and how much of it counts: every executor runs them.
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
