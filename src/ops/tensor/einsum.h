// Sums of products in Einstein's notation.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct EinsumAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.EinsumAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<EinsumAttrs>& f);
  std::string equation;
};

Expr einsum(Array<Expr> data, std::string equation, Span span = {});

// Axes by what they are called: a letter, or for the axes of "..." -1 for the last of them, -2 for the one before.
struct EinsumForm {
  std::vector<std::vector<int>> operands;
  std::vector<int> output;
  std::vector<int> summed;  // labels of no axis of the output, in the order in which they first occur

  // Where a label stands among those of the output, then the summed ones.
  size_t place_of(int label) const;
};
// What an equation says of operands of those ranks: "ij,jk->ik", "...i,i", without an arrow the letters that occur once
// in the order of the alphabet, behind "...". UserError: what it does not allow.
EinsumForm einsum_form(std::string_view equation, const std::vector<size_t>& ranks);

}  // namespace headrace::ops
