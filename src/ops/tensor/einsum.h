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

// The axes of an equation by label: a letter, or for the axes of "..." -1 for the last of them, -2 for the one before.
struct EinsumForm {
  std::vector<std::vector<int>> operands;
  std::vector<int> output;
  std::vector<int> summed;  // labels of no axis of the output, in the order in which they first occur

  // Returns the position of a label among those of the output, followed by the summed ones.
  size_t place_of(int label) const;
};
// Parses an equation for operands of those ranks: "ij,jk->ik", "...i,i"; without an arrow the output has the letters
// that occur once, in the order of the alphabet, behind "...". UserError for an equation that is not valid for them.
EinsumForm einsum_form(std::string_view equation, const std::vector<size_t>& ranks);

}  // namespace headrace::ops
