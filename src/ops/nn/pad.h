// nn.pad and nn.mirror_pad.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct PadAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.PadAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<PadAttrs>& f);
  Array<Shape> pad_width;
  std::string pad_mode = "constant";
};

struct MirrorPadAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MirrorPadAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MirrorPadAttrs>& f);
  std::string mode = "SYMMETRIC";
  Array<Shape> pad_width;
};

// The source of an element outside of the data.
enum class Border : uint8_t { constant, edge, reflect, symmetric };
// Parses a checked pad_mode or mode.
Border border_of(std::string_view mode);

Expr pad(Expr data, Array<Shape> pad_width, Expr pad_value, std::string pad_mode = "constant", Span span = {});
// Makes a call with pad_width as an int tensor [rank, 2].
Expr pad(Expr data, Expr pad_width, Expr pad_value, std::string pad_mode = "constant", Span span = {});
Expr mirror_pad(Expr data, Array<Shape> pad_width, std::string mode = "SYMMETRIC", Span span = {});

}  // namespace headrace::ops
