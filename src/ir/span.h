// Span: where in a source (text file or model) a node came from.
#pragma once

#include "object/array.h"
#include "object/map.h"

namespace headrace {

struct SpanNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.Span";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<SpanNode>& f);
  std::string source;
  int64_t line = 0;
  int64_t column = 0;
  int64_t end_line = 0;
  int64_t end_column = 0;
};
using Span = Ref<SpanNode>;

Span make_span(std::string source, int64_t line = 0, int64_t column = 0, int64_t end_line = 0, int64_t end_column = 0);
// Returns "model.relay:3:14", or the source alone when it has no lines; empty for a null span.
std::string to_string(const Span& span);

}  // namespace headrace
