#include "ir/span.h"

namespace headrace {

void SpanNode::fields(FieldList<SpanNode>& f) {
  f.field<&SpanNode::source>("source_name", {.doc = "file name, or the node's path in an imported model"})
      .field<&SpanNode::line>("line", {.doc = "first line, from 1; 0 when the source has no lines"})
      .field<&SpanNode::column>("column", {.doc = "first column, from 1"})
      .field<&SpanNode::end_line>("end_line")
      .field<&SpanNode::end_column>("end_column", {.doc = "one past the last column"});
}

Span make_span(std::string source, int64_t line, int64_t column, int64_t end_line, int64_t end_column) {
  Span span = make_object<SpanNode>();
  span->source = std::move(source);
  span->line = line;
  span->column = column;
  span->end_line = end_line;
  span->end_column = end_column;
  return span;
}

std::string to_string(const Span& span) {
  if (!span) return {};
  if (span->line == 0) return span->source;
  return fmt::format("{}:{}:{}", span->source, span->line, span->column);
}

}  // namespace headrace
